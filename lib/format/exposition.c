/* https://prometheus.io/docs/instrumenting/exposition_formats/
 * https://prometheus.io/docs/specs/om/open_metrics_spec/ */
#include "format/exposition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/family_names.h"
#include "text/buffer.h"
#include "text/number.h"

enum { NAME_ROOM = 256 };

struct work {
    struct wr_buffer *out;
    enum wr_exposition_format format;
    const struct wr_exposed *first, *end; /* the family */
    bool puts_group, puts_name;           /* labels that keep series apart */
};

/* ---- Numbers --------------------------------------------------------------------------------- */

static void put_number(struct wr_buffer *out, double value)
{
    if (isinf(value))
        wr_buffer_put_text(out, value > 0 ? "+Inf" : "-Inf");
    else if (wr_buffer_reserve(out, WR_NUMBER_ROOM))
        out->length += wr_number_put_double(out->data + out->length, value);
}

/* A bound is a text to Prometheus: both formats write it alike, as OpenMetrics demands. */
static void put_bound(struct wr_buffer *out, double value)
{
    size_t start = out->length;
    put_number(out, value);
    if (!out->failed && isfinite(value) && !memchr(out->data + start, '.', out->length - start) &&
        !memchr(out->data + start, 'e', out->length - start))
        wr_buffer_put_text(out, ".0");
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static void put_name(const struct work *work, const char *suffix)
{
    const struct wr_series_text *text = &work->first->text;
    wr_buffer_put_text(work->out, text->family);
    for (unsigned words = 1; words < text->named; words++)
        wr_buffer_put_text(work->out, wr_family_names_word(text->type));
    wr_buffer_put_text(work->out, suffix);
}

/* The name of a series without the part of a histogram that it is. */
static size_t name_length(const struct wr_exposed *entry)
{
    const char *name = entry->series->name;
    return entry->text.type == WR_SERIES_HISTOGRAM ? (size_t)(strrchr(name, '.') - name) : strlen(name);
}

static void put_label(struct wr_buffer *out, char *before, const char *key, const char *value, size_t length)
{
    char text[NAME_ROOM] = "";
    memcpy(text, value, length < sizeof text ? length : sizeof text - 1);
    wr_buffer_put_char(out, *before);
    wr_buffer_put_text(out, key);
    wr_buffer_put_text(out, "=\"");
    wr_series_text_put_escaped(out, text, "\\\"");
    wr_buffer_put_char(out, '"');
    *before = ',';
}

/* The series' own labels as they were given, without the one that distinguishes the buckets of a histogram.
 * Returns the one at or after index *at, and moves on. NULL: the end. */
static const weir_label *next_label(const struct wr_exposed *entry, size_t *at)
{
    const weir_series *series = entry->series;
    while (*at < series->label_count) {
        const weir_label *label = &series->labels[(*at)++];
        if (entry->text.part != WR_SERIES_BUCKET || strcmp(label->key, "le") != 0)
            return label;
    }
    return NULL;
}

static void put_given_labels(struct wr_buffer *out, char *before, const struct wr_exposed *entry)
{
    size_t at = 0;
    const weir_label *label = next_label(entry, &at);
    if (!label)
        return;
    wr_buffer_put_char(out, *before);
    wr_buffer_put_text(out, "weir_labels=\"");
    for (const char *between = ""; label; label = next_label(entry, &at), between = ",") {
        wr_buffer_put_text(out, between);
        wr_series_text_put_escaped(out, label->key, "\\\"");
        wr_buffer_put_char(out, '=');
        wr_series_text_put_escaped(out, label->value, "\\\"");
    }
    wr_buffer_put_char(out, '"');
    *before = ',';
}

static void put_labels(const struct work *work, const struct wr_exposed *entry, const double *le)
{
    struct wr_buffer *out = work->out;
    char before = '{';
    if (*entry->text.labels) {
        wr_buffer_put_char(out, before);
        wr_buffer_put_text(out, entry->text.labels);
        before = ',';
    }
    if (work->puts_group)
        put_label(out, &before, entry->text.has_group ? "weir_group" : "group", entry->series->group,
                  strlen(entry->series->group));
    if (work->puts_name)
        put_label(out, &before, "weir_name", entry->series->name, name_length(entry));
    if (entry->text.puts_labels)
        put_given_labels(out, &before, entry);
    if (le) {
        wr_buffer_put_char(out, before);
        wr_buffer_put_text(out, "le=\"");
        put_bound(out, *le);
        wr_buffer_put_char(out, '"');
        before = ',';
    }
    if (before == ',')
        wr_buffer_put_char(out, '}');
}

static void put_line(const struct work *work, const char *suffix, const struct wr_exposed *entry,
                     const double *le, double value)
{
    put_name(work, suffix);
    put_labels(work, entry, le);
    wr_buffer_put_char(work->out, ' ');
    put_number(work->out, value);
    wr_buffer_put_char(work->out, '\n');
}

/* OpenMetrics, "Counter" and "Histogram": seconds since 1970, behind the other samples of the label set. */
static void put_created(const struct work *work, const struct wr_exposed *entry)
{
    if (work->format == WR_EXPOSITION_OPENMETRICS && entry->created_ns > 0)
        put_line(work, "_created", entry, NULL, (double)entry->created_ns / 1e9);
}

/* ---- Order ----------------------------------------------------------------------------------- */

static int compare_names(const struct wr_exposed *a, const struct wr_exposed *b)
{
    size_t a_length = name_length(a), b_length = name_length(b);
    int order = strncmp(a->series->name, b->series->name, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

/* Whether two series of one type and family have the same group and name. */
static bool is_same_name(const struct wr_exposed *a, const struct wr_exposed *b)
{
    return strcmp(a->series->group, b->series->group) == 0 && compare_names(a, b) == 0;
}

static int compare_given_labels(const struct wr_exposed *a, const struct wr_exposed *b)
{
    for (size_t a_at = 0, b_at = 0;;) {
        const weir_label *label = next_label(a, &a_at), *other = next_label(b, &b_at);
        if (!label || !other)
            return (label != NULL) - (other != NULL);
        int order = strcmp(label->key, other->key);
        if (!order)
            order = strcmp(label->value, other->value);
        if (order)
            return order;
    }
}

/* Whether two series of one type and family are written with the same labels, unless the given ones are added.
 */
static bool is_written_alike(const struct wr_exposed *a, const struct wr_exposed *b)
{
    return is_same_name(a, b) && strcmp(a->text.labels, b->text.labels) == 0;
}

static bool is_same_series(const struct wr_exposed *a, const struct wr_exposed *b)
{
    return is_written_alike(a, b) && compare_given_labels(a, b) == 0;
}

static int compare(const void *left, const void *right)
{
    const struct wr_exposed *a = left, *b = right;
    int order = strcmp(a->text.family, b->text.family);
    if (!order)
        order = (int)a->text.type - (int)b->text.type;
    if (!order)
        order = strcmp(a->series->group, b->series->group);
    if (!order)
        order = compare_names(a, b);
    if (!order)
        order = strcmp(a->text.labels, b->text.labels);
    if (!order)
        order = compare_given_labels(a, b);
    if (!order)
        order = (int)a->text.part - (int)b->text.part;
    if (!order)
        order = (a->text.le > b->text.le) - (a->text.le < b->text.le);
    return order ? order : (a->series->id > b->series->id) - (a->series->id < b->series->id);
}

void wr_exposition_sort(struct wr_exposed *first, size_t count)
{
    if (count)
        qsort(first, count, sizeof *first, compare);
}

/* ---- Histograms ------------------------------------------------------------------------------ */

/* Entries with the same labels: the parts of one histogram. */
struct histogram {
    const struct wr_exposed *first, *end, *sum, *count, *last_bucket;
    int64_t time_ns; /* of the last bucket */
};

static struct histogram find_histogram(const struct wr_exposed *first, const struct wr_exposed *end)
{
    struct histogram histogram = {.first = first};
    const struct wr_exposed *entry = first;
    for (; entry < end && is_same_series(entry, first); entry++) {
        if (entry->text.part == WR_SERIES_SUM)
            histogram.sum = entry;
        else if (entry->text.part == WR_SERIES_COUNT)
            histogram.count = entry;
        else
            histogram.last_bucket = entry;
    }
    if (histogram.last_bucket)
        histogram.time_ns = histogram.last_bucket->time_ns;
    histogram.end = entry;
    return histogram;
}

/* A bucket that no longer gets totals belongs to bounds that were replaced. */
static void put_histogram(const struct work *work, const struct histogram *histogram)
{
    double count = 0;
    if (!histogram->sum || !histogram->count || !histogram->last_bucket ||
        !isinf(histogram->last_bucket->text.le))
        return; /* not all of it has come */
    for (const struct wr_exposed *entry = histogram->first; entry <= histogram->last_bucket; entry++) {
        if (entry->time_ns != histogram->time_ns)
            continue;
        count = entry->value > count ? entry->value : count;
        put_line(work, "_bucket", entry, &entry->text.le, count);
    }
    /* OpenMetrics: no sum beside values that may be negative, as it is no counter, and no count without a sum
     */
    if (work->format != WR_EXPOSITION_OPENMETRICS || histogram->first->text.le >= 0) {
        put_line(work, "_sum", histogram->sum, NULL,
                 wr_base_unit_convert(histogram->sum->text.unit, histogram->sum->value));
        put_line(work, "_count", histogram->count, NULL, count);
    }
    put_created(work, histogram->count);
}

/* ---- Families -------------------------------------------------------------------------------- */

static const char *const type_names[] = {"counter", "histogram", "gauge"};

/* In the text format a counter's _total is a part of the family's name. */
static const char *family_suffix(const struct work *work)
{
    bool is_total = work->first->text.type == WR_SERIES_COUNTER && work->format == WR_EXPOSITION_TEXT;
    return is_total ? "_total" : "";
}

static void put_comment(const struct work *work, const char *keyword)
{
    wr_buffer_put_text(work->out, keyword);
    put_name(work, family_suffix(work));
    wr_buffer_put_char(work->out, ' ');
}

static void put_help(const struct work *work)
{
    const char *marks = work->format == WR_EXPOSITION_OPENMETRICS ? "\\\"" : "\\";
    const struct wr_exposed *entry = work->first;
    while (entry < work->end && !entry->series->help)
        entry++;
    put_comment(work, "# HELP ");
    if (entry < work->end)
        wr_series_text_put_escaped(work->out, entry->series->help, marks);
    else {
        char name[NAME_ROOM] = "";
        memcpy(name, work->first->series->name, name_length(work->first));
        wr_series_text_put_escaped(work->out, name, marks);
        wr_buffer_put_text(work->out, " of ");
        wr_series_text_put_escaped(work->out, work->first->series->group, marks);
    }
    if (work->first->series->unit && !work->first->text.unit) {
        wr_buffer_put_text(work->out, " (");
        wr_series_text_put_escaped(work->out, work->first->series->unit, marks);
        wr_buffer_put_char(work->out, ')');
    }
    wr_buffer_put_char(work->out, '\n');
}

static void put_head(const struct work *work)
{
    const struct wr_series_text *text = &work->first->text;
    put_help(work);
    put_comment(work, "# TYPE ");
    wr_buffer_put_text(work->out, type_names[text->type]);
    wr_buffer_put_char(work->out, '\n');
    if (work->format != WR_EXPOSITION_OPENMETRICS || !text->has_unit || text->named > 1)
        return;
    put_comment(work, "# UNIT ");
    wr_buffer_put_text(work->out, text->unit->base);
    wr_buffer_put_char(work->out, '\n');
}

/* Names that became equal are kept apart by their groups, those of one group by their names. */
static void find_clashes(struct work *work)
{
    work->puts_group = work->puts_name = false;
    for (const struct wr_exposed *entry = work->first; entry < work->end; entry++) {
        work->puts_group |= entry->text.puts_group;
        work->puts_name |= entry->text.puts_name;
        if (entry == work->first)
            continue;
        if (strcmp(entry->series->group, entry[-1].series->group) != 0)
            work->puts_group = true;
        else if (!is_same_name(entry, entry - 1))
            work->puts_name = true;
    }
}

/* Label sets that became equal are kept apart by the labels as they were given. Returns whether there are any.
 */
static bool find_label_clashes(struct wr_exposed *first, const struct wr_exposed *end)
{
    bool has_clashes = false;
    for (struct wr_exposed *next; first < end; first = next) {
        bool puts_labels = false;
        for (next = first; next < end && is_written_alike(next, first); next++)
            puts_labels |= next->text.puts_labels || compare_given_labels(next, first) != 0;
        for (struct wr_exposed *entry = first; entry < next; entry++)
            entry->text.puts_labels = puts_labels;
        has_clashes |= puts_labels;
    }
    return has_clashes;
}

static void remember_clashes(const struct work *work, struct wr_exposed *first)
{
    for (struct wr_exposed *entry = first; entry < work->end; entry++) {
        entry->text.puts_group = work->puts_group;
        entry->text.puts_name = work->puts_name;
    }
}

/* A value's summary has parts with names, which a program may use as well. Moves to the next series. */
static const struct wr_exposed *find_latest(const struct wr_exposed **entry, const struct wr_exposed *end)
{
    const struct wr_exposed *latest = *entry, *next = latest;
    while (++next < end && is_same_series(next, latest))
        latest = next->time_ns >= latest->time_ns ? next : latest;
    *entry = next;
    return latest;
}

static void put_family(const struct work *work)
{
    const struct wr_exposed *entry = work->first;
    put_head(work);
    while (entry < work->end) {
        if (entry->text.type == WR_SERIES_HISTOGRAM) {
            struct histogram histogram = find_histogram(entry, work->end);
            put_histogram(work, &histogram);
            entry = histogram.end;
            continue;
        }
        const struct wr_exposed *latest = find_latest(&entry, work->end);
        put_line(work, latest->text.type == WR_SERIES_COUNTER ? "_total" : "", latest, NULL,
                 wr_base_unit_convert(latest->text.unit, latest->value));
        put_created(work, latest);
    }
}

static bool is_same_family(const struct wr_exposed *a, const struct wr_exposed *b)
{
    return a->text.type == b->text.type && strcmp(a->text.family, b->text.family) == 0;
}

static struct wr_exposed *find_family_end(struct wr_exposed *family, const struct wr_exposed *end)
{
    struct wr_exposed *next = family + 1;
    while (next < end && is_same_family(family, next))
        next++;
    return next;
}

/* A family that has been named keeps its name, if it is free. */
static void name_again(struct wr_family_names *names, struct wr_exposed *family, const struct wr_exposed *end)
{
    unsigned named = 0;
    for (const struct wr_exposed *entry = family; entry < end && !named; entry++)
        named = entry->text.named;
    if (named && !wr_family_names_take(names, family->text.family, family->text.type, named - 1))
        named = 0;
    for (; family < end; family++)
        family->text.named = (uint8_t)named;
}

static void name_anew(struct wr_family_names *names, struct wr_exposed *family, const struct wr_exposed *end)
{
    unsigned named = 1;
    while (!wr_family_names_take(names, family->text.family, family->text.type, named - 1) && !names->failed &&
           named < UINT8_MAX)
        named++;
    for (; family < end; family++)
        family->text.named = (uint8_t)named;
}

/* Sets `named` of all. Returns false if out of memory. */
static bool name_families(struct wr_exposed *first, struct wr_exposed *end)
{
    struct wr_family_names names = {0};
    wr_family_names_take(&names, WR_EXPOSITION_OWN, WR_SERIES_GAUGE, 0);
    for (struct wr_exposed *family = first, *next; family < end; family = next) {
        next = find_family_end(family, end);
        name_again(&names, family, next);
    }
    for (struct wr_exposed *family = first, *next; family < end; family = next) {
        next = find_family_end(family, end);
        if (!family->text.named)
            name_anew(&names, family, next);
    }
    bool done = !names.failed;
    wr_family_names_fini(&names);
    return done;
}

unsigned wr_exposition_write(struct wr_buffer *out, struct wr_exposed *first, size_t count,
                             enum wr_exposition_format format)
{
    struct work work = {.out = out, .format = format};
    struct wr_exposed *end = first + count;
    unsigned clashes = 0;
    if (!name_families(first, end)) {
        out->failed = true;
        return 0;
    }
    for (struct wr_exposed *family = first, *next; family < end; family = next) {
        next = find_family_end(family, end);
        work.first = family;
        work.end = next;
        find_clashes(&work);
        bool has_label_clashes = find_label_clashes(family, next);
        clashes += family->text.named > 1 || work.puts_group || work.puts_name || has_label_clashes;
        put_family(&work);
        remember_clashes(&work, family);
    }
    if (format == WR_EXPOSITION_OPENMETRICS)
        wr_buffer_put_text(out, "# EOF\n");
    return clashes;
}
