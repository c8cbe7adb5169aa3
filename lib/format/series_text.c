#include "format/series_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "registry/labels_walk.h"
#include "text/buffer.h"
#include "text/common.h"
#include "text/number.h"

enum { NAME_LONGEST = 256 }; /* a digit gets a _ in front */

/* ---- Type ------------------------------------------------------------------------------------ */

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t end_length = strlen(end);
    return length > end_length && memcmp(text + length - end_length, end, end_length) == 0;
}

static const char *find_le(const weir_series *series)
{
    return wr_labels_find(series->labels, series->label_count, "le");
}

/* The parts of a histogram that are running totals have its instrument. */
static enum wr_series_part find_part(const weir_series *series)
{
    size_t length = strlen(series->name);
    if (series->instrument != WEIR_HISTOGRAM || !series->cumulative)
        return WR_SERIES_OTHER;
    if (find_le(series) && ends_with(series->name, length, ".bucket"))
        return WR_SERIES_BUCKET;
    return ends_with(series->name, length, ".sum")     ? WR_SERIES_SUM
           : ends_with(series->name, length, ".count") ? WR_SERIES_COUNT
                                                       : WR_SERIES_OTHER;
}

static enum wr_series_type find_type(const weir_series *series, enum wr_series_part part,
                                     const struct wr_series_rules *rules)
{
    if (part != WR_SERIES_OTHER)
        return WR_SERIES_HISTOGRAM;
    if (series->instrument == WEIR_GAUGE)
        return WR_SERIES_GAUGE;
    bool is_counter = series->cumulative || (rules->adds_increments && series->instrument == WEIR_COUNTER);
    return is_counter ? WR_SERIES_COUNTER : WR_SERIES_GAUGE;
}

static double read_le(const char *text)
{
    double value = INFINITY;
    wr_number_read_double(text, &value);
    return value;
}

/* ---- Names ----------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Each character that is not allowed in a name becomes one '_'. */
static void put_name(struct wr_buffer *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80) /* not within a character of several bytes */
            wr_buffer_put_char(out,
                               is_letter(text[i]) || wr_is_digit(text[i]) || text[i] == ':' ? text[i] : '_');
}

/* Where the suffix of a part of an interval begins: ".p99_9"; the end of the name if there is none. */
static size_t find_interval_part(const char *name)
{
    static const char *const parts[] = {".count", ".sum", ".min", ".max", ".last"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (ends_with(name, length, parts[i]))
            return length - strlen(parts[i]);
    const char *dot = strrchr(name, '.');
    return dot && dot[1] == 'p' && wr_is_digit(dot[2]) && strspn(dot + 2, "0123456789_") == strlen(dot + 2)
               ? (size_t)(dot - name)
               : length;
}

static void strip(struct wr_buffer *name, const char *word)
{
    size_t length = strlen(word);
    if (name->failed || name->length <= length + 1 || !ends_with(name->data, name->length, word) ||
        name->data[name->length - length - 1] != '_')
        return;
    name->length -= length + 1;
}

static void put_unit(struct wr_buffer *out, const struct wr_base_unit *unit)
{
    strip(out, unit->word);
    strip(out, unit->base);
    wr_buffer_put_char(out, '_');
    wr_buffer_put_text(out, unit->base);
}

/* A gauge's name must not end in what other types append to theirs. */
static void protect(struct wr_buffer *out)
{
    static const char *const reserved[] = {"_total", "_count", "_sum", "_bucket", "_created", "_info"};
    for (size_t i = 0; !out->failed && i < sizeof reserved / sizeof *reserved; i++)
        if (ends_with(out->data, out->length, reserved[i])) {
            wr_buffer_put_text(out, "_value");
            return;
        }
}

/* Returns the length of the name without the part that it names. */
static size_t find_stem(const struct wr_series_text *text, const char *name, size_t length)
{
    switch (text->type) {
    case WR_SERIES_COUNTER: return length;
    case WR_SERIES_HISTOGRAM: return (size_t)(strrchr(name, '.') - name);
    default: return find_interval_part(name);
    }
}

static void put_family(struct wr_buffer *out, struct wr_series_text *text, const weir_series *series)
{
    const char *name = series->name;
    size_t length = strlen(name);
    size_t stem = find_stem(text, name, length);
    if (wr_is_digit(series->group[0]))
        wr_buffer_put_char(out, '_');
    put_name(out, series->group, strlen(series->group));
    wr_buffer_put_char(out, '_');
    put_name(out, name, stem);
    if (text->type == WR_SERIES_COUNTER)
        strip(out, "total");
    if (text->unit)
        put_unit(out, text->unit);
    if (text->type == WR_SERIES_GAUGE)
        put_name(out, name + stem, length - stem);
    text->has_unit = text->unit && (text->type != WR_SERIES_GAUGE || stem == length);
    if (text->type == WR_SERIES_GAUGE)
        protect(out);
    wr_buffer_put_char(out, '\0');
}

/* ---- Labels ---------------------------------------------------------------------------------- */

void wr_series_text_put_escaped(struct wr_buffer *out, const char *text, const char *marks)
{
    for (; *text; text++) {
        if (*text == '\n' || strchr(marks, *text))
            wr_buffer_put_char(out, '\\');
        wr_buffer_put_char(out, *text == '\n' ? 'n' : *text);
    }
}

/* The labels of a series and of its batch, in that order. */
struct walk {
    const weir_series *series;
    const weir_batch *batch;
    enum wr_series_part part;
    size_t next;
};

/* The label of a bucket that is its bound, which is written apart. */
static bool is_bound(const struct walk *walk, const char *key)
{
    return walk->part == WR_SERIES_BUCKET && strcmp(key, "le") == 0;
}

static bool is_own(const struct walk *walk, const char *key)
{
    return wr_labels_find(walk->series->labels, walk->series->label_count, key) && !is_bound(walk, key);
}

/* An empty value means the same as no label. A series' own label takes precedence. NULL: the end. */
static const weir_label *next_label(struct walk *walk)
{
    const weir_series *series = walk->series;
    size_t count;
    const weir_label *labels = weir_batch_labels(walk->batch, series, &count);
    while (walk->next < series->label_count + count) {
        size_t i = walk->next++;
        bool own = i < series->label_count;
        const weir_label *label = own ? &series->labels[i] : &labels[i - series->label_count];
        if (*label->value && (own ? !is_bound(walk, label->key) : !is_own(walk, label->key)))
            return label;
    }
    return NULL;
}

/* Whether the key is one that is added to the series itself: by wr_exposition_write, or to buckets. */
static bool is_added(const struct walk *walk, const char *key)
{
    static const char *const added[] = {"weir_group", "weir_name", "weir_labels"};
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        if (strcmp(key, added[i]) == 0)
            return true;
    return walk->part != WR_SERIES_OTHER && strcmp(key, "le") == 0;
}

/* Converts a label's key: it must not begin with a digit, or with '__', which Prometheus reserves. One that
 * equals a key that is added gets the word in front by which Prometheus keeps such labels apart from its own.
 */
static void make_key(const struct walk *walk, char *out, const char *key)
{
    static const char exported[] = "exported_";
    size_t length = 0;
    if (wr_is_digit(*key))
        out[length++] = '_';
    for (; *key && length < NAME_LONGEST; key++) {
        if (((unsigned char)*key & 0xc0) == 0x80)
            continue;
        char c = is_letter(*key) || wr_is_digit(*key) ? *key : '_';
        if (c != '_' || length != 1 || out[0] != '_')
            out[length++] = c;
    }
    out[length] = '\0';
    if (is_added(walk, out)) {
        memmove(out + sizeof exported - 1, out, length + 1);
        memcpy(out, exported, sizeof exported - 1);
    }
}

/* Finds the first label with the least key that is above `key`, and makes its key that. Returns the label, and
 * the walk behind it; NULL: there is none. */
static const weir_label *find_next_key(const struct walk *all, char *key, struct walk *behind)
{
    const weir_label *found = NULL;
    struct walk walk = *all;
    char candidate[NAME_LONGEST + 1], least[NAME_LONGEST + 1];
    for (const weir_label *label; (label = next_label(&walk));) {
        make_key(&walk, candidate, label->key);
        if (strcmp(candidate, key) <= 0 || (found && strcmp(candidate, least) >= 0))
            continue;
        found = label;
        *behind = walk;
        memcpy(least, candidate, strlen(candidate) + 1);
    }
    if (found)
        memcpy(key, least, strlen(least) + 1);
    return found;
}

/* Labels whose keys became equal are written as one label with all their values. */
static void put_values(struct wr_buffer *out, struct walk walk, const char *key, const char *value)
{
    char later[NAME_LONGEST + 1];
    wr_buffer_put_text(out, "=\"");
    wr_series_text_put_escaped(out, value, "\\\"");
    for (const weir_label *label; (label = next_label(&walk));) {
        make_key(&walk, later, label->key);
        if (strcmp(later, key) != 0)
            continue;
        wr_buffer_put_char(out, ';');
        wr_series_text_put_escaped(out, label->value, "\\\"");
    }
    wr_buffer_put_char(out, '"');
}

/* In the order of the keys: equal label sets are equal texts. */
static void put_labels(struct wr_buffer *out, struct wr_series_text *text, struct walk walk)
{
    char key[NAME_LONGEST + 1] = "";
    bool first = true;
    struct walk behind;
    for (const weir_label *label; (label = find_next_key(&walk, key, &behind));) {
        if (!first)
            wr_buffer_put_char(out, ',');
        wr_buffer_put_text(out, key);
        put_values(out, behind, key, label->value);
        text->has_group |= strcmp(key, "group") == 0;
        first = false;
    }
    wr_buffer_put_char(out, '\0');
}

/* ---- Both ------------------------------------------------------------------------------------ */

bool wr_series_text_init(struct wr_series_text *text, const weir_series *series, const weir_batch *batch,
                         const struct wr_series_rules *rules)
{
    struct wr_buffer both = {0};
    *text = (struct wr_series_text){.part = find_part(series)};
    text->type = find_type(series, text->part, rules);
    text->unit = rules->base_units ? wr_base_unit_find(series->unit) : NULL;
    put_family(&both, text, series);
    size_t name = both.length;
    put_labels(&both, text, (struct walk){series, batch, text->part, 0});
    if (both.failed) {
        wr_buffer_fini(&both);
        return false;
    }
    text->family = both.data;
    text->labels = both.data + name;
    if (text->part == WR_SERIES_BUCKET)
        text->le = wr_base_unit_convert(text->unit, read_le(find_le(series)));
    return true;
}

void wr_series_text_fini(struct wr_series_text *text)
{
    free(text->family);
    *text = (struct wr_series_text){0};
}
