#include "format/format.h"

#include <math.h>
#include <stdlib.h>

#include "text/array.h"
#include "text/common.h"
#include "registry/labels.h"
#include "registry/name.h"
#include "text/number.h"

/* A line of the document. */
struct line {
    const char *text; /* name{labels} and a blank; in the affixes */
    uint32_t length, name_length;
    uint32_t sample; /* index in the batch */
    const weir_series *series;
};

struct prometheus {
    uint32_t *latest; /* by series id: index of its last sample so far, plus one; 0: none */
    uint32_t latest_room;
    struct line *lines;
    uint32_t line_count, line_room;
};

static void free_state(void *state)
{
    struct prometheus *prometheus = state;
    free(prometheus->latest);
    free(prometheus->lines);
    free(prometheus);
}

/* ---- Names ----------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Each character that is not allowed in a name becomes one '_'. */
static void put_name(struct wr_buffer *out, const char *text)
{
    for (; *text; text++)
        if (((unsigned char)*text & 0xc0) != 0x80) /* not within a character of several bytes */
            wr_buffer_put_char(out, is_letter(*text) || is_digit(*text) || *text == ':' ? *text : '_');
}

/* Converts a label's key: it must not begin with a digit, or with '__', which Prometheus reserves. */
static size_t make_key(char *out, const char *key)
{
    size_t length = 0;
    if (is_digit(*key))
        out[length++] = '_';
    for (; *key; key++) {
        if (((unsigned char)*key & 0xc0) == 0x80)
            continue;
        char c = is_letter(*key) || is_digit(*key) ? *key : '_';
        if (c != '_' || length != 1 || out[0] != '_')
            out[length++] = c;
    }
    return length;
}

/* ---- Labels ---------------------------------------------------------------------------------- */

/* A label of a series, with its key converted. */
struct label {
    char key[WR_NAME_LONGEST + 1];
    size_t key_length;
    const char *value;
};

/* Reads the next label. An empty value means the same as no label, so it is skipped. Returns false at the end.
 */
static bool next_label(struct wr_labels_walk *walk, const weir_series *series, const weir_batch *batch,
                       struct label *label)
{
    const weir_label *next;
    do {
        next = wr_labels_next(walk, series, batch);
        if (!next)
            return false;
    } while (!*next->value);
    label->key_length = make_key(label->key, next->key);
    label->value = next->value;
    return true;
}

static bool is_same_key(const struct label *a, const struct label *b)
{
    return a->key_length == b->key_length && memcmp(a->key, b->key, a->key_length) == 0;
}

static void put_escaped(struct wr_buffer *out, const char *text, const char *marks)
{
    for (; *text; text++) {
        if (*text == '\n' || strchr(marks, *text))
            wr_buffer_put_char(out, '\\');
        wr_buffer_put_char(out, *text == '\n' ? 'n' : *text);
    }
}

/* Whether one of the first `count` labels has the same key, and so was written with this one's value. */
static bool was_put(const struct label *label, unsigned count, const weir_series *series,
                    const weir_batch *batch)
{
    struct wr_labels_walk walk = {0, 0};
    struct label earlier;
    for (; count && next_label(&walk, series, batch, &earlier); count--)
        if (is_same_key(label, &earlier))
            return true;
    return false;
}

/* Labels whose keys became equal are written as one label with all their values. */
static void put_values(struct wr_buffer *out, const struct label *label, struct wr_labels_walk walk,
                       const weir_series *series, const weir_batch *batch)
{
    struct label later;
    wr_buffer_put_char(out, '"');
    put_escaped(out, label->value, "\\\"");
    while (next_label(&walk, series, batch, &later)) {
        if (!is_same_key(label, &later))
            continue;
        wr_buffer_put_char(out, ';');
        put_escaped(out, later.value, "\\\"");
    }
    wr_buffer_put_char(out, '"');
}

static void put_labels(struct wr_buffer *out, const weir_series *series, const weir_batch *batch)
{
    struct wr_labels_walk walk = {0, 0};
    struct label label;
    char before = '{';
    for (unsigned count = 0; next_label(&walk, series, batch, &label); count++) {
        if (was_put(&label, count, series, batch))
            continue;
        wr_buffer_put_char(out, before);
        wr_buffer_put(out, label.key, label.key_length);
        wr_buffer_put_char(out, '=');
        put_values(out, &label, walk, series, batch);
        before = ',';
    }
    if (before == ',')
        wr_buffer_put_char(out, '}');
}

static void put_prefix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    if (is_digit(series->group[0]))
        wr_buffer_put_char(out, '_');
    put_name(out, series->group);
    wr_buffer_put_char(out, '_');
    put_name(out, series->name);
    put_labels(out, series, encoder->batch);
    wr_buffer_put_char(out, ' ');
}

/* ---- The last sample of each series ---------------------------------------------------------- */

static bool has_latest_room(struct prometheus *prometheus, uint32_t series)
{
    uint32_t *latest =
        wr_array_reserve(prometheus->latest, &prometheus->latest_room, series + 1, sizeof *latest);
    if (latest)
        prometheus->latest = latest;
    return latest;
}

static bool has_line_room(struct prometheus *prometheus)
{
    struct line *lines =
        wr_array_reserve(prometheus->lines, &prometheus->line_room, prometheus->line_count + 1, sizeof *lines);
    if (lines)
        prometheus->lines = lines;
    return lines;
}

/* Records a sample. The first one of a series adds a line, whose text is set later. */
static bool record(struct wr_encoder *encoder, uint32_t number)
{
    struct prometheus *prometheus = encoder->state;
    uint32_t series = encoder->batch->samples[number].series;
    if (!has_latest_room(prometheus, series) || !has_line_room(prometheus) ||
        !wr_encoder_affixes(encoder, series))
        return false;
    if (!prometheus->latest[series])
        prometheus->lines[prometheus->line_count++] = (struct line){.sample = number};
    prometheus->latest[series] = number + 1;
    return true;
}

/* Prometheus' numbers are doubles; integers without an exact double are omitted. */
static bool is_written(const weir_sample *sample)
{
    return sample->kind != WEIR_KIND_INT || wr_number_is_double(sample->value.i64);
}

static bool record_all(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        if (!is_written(&encoder->batch->samples[i]))
            wr_encoder_omit(encoder, i);
        else if (!record(encoder, i))
            return false;
    }
    return true;
}

/* Sets the texts of the lines, after the last affix was made, since making one may move the others. Resets
 * `latest` for the next document. */
static void find_texts(struct wr_encoder *encoder)
{
    struct prometheus *prometheus = encoder->state;
    const weir_batch *batch = encoder->batch;
    for (uint32_t i = 0; i < prometheus->line_count; i++) {
        struct line *line = &prometheus->lines[i];
        uint32_t series = batch->samples[line->sample].series;
        const struct wr_affixes *affixes = wr_encoder_affixes(encoder, series);
        line->text = wr_encoder_prefix(encoder, affixes);
        line->length = affixes->prefix;
        const char *brace = memchr(line->text, '{', line->length);
        line->name_length = brace ? (uint32_t)(brace - line->text) : line->length - 1;
        line->sample = prometheus->latest[series] - 1;
        line->series = batch->series(batch, series);
        prometheus->latest[series] = 0;
    }
}

/* ---- Order ----------------------------------------------------------------------------------- */

static int compare_texts(const char *a, uint32_t a_length, const char *b, uint32_t b_length)
{
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static bool is_same_family(const struct line *a, const struct line *b)
{
    return compare_texts(a->text, a->name_length, b->text, b->name_length) == 0;
}

static bool is_same_text(const struct line *a, const struct line *b)
{
    return compare_texts(a->text, a->length, b->text, b->length) == 0;
}

/* By name, then by labels, then by position in the batch. */
static int compare_lines(const void *of_a, const void *of_b)
{
    const struct line *a = of_a, *b = of_b;
    int order = compare_texts(a->text, a->name_length, b->text, b->name_length);
    if (!order)
        order = compare_texts(a->text, a->length, b->text, b->length);
    return order ? order : (a->sample > b->sample) - (a->sample < b->sample);
}

/* ---- The document ---------------------------------------------------------------------------- */

static const char *find_help(const struct line *first, const struct line *end)
{
    for (; first < end; first++)
        if (first->series->help)
            return first->series->help;
    return NULL;
}

static void put_help(struct wr_buffer *out, const struct line *first, const struct line *end)
{
    const weir_series *series = first->series;
    const char *help = find_help(first, end);
    wr_buffer_put_text(out, "# HELP ");
    wr_buffer_put(out, first->text, first->name_length);
    wr_buffer_put_char(out, ' ');
    put_escaped(out, help ? help : series->name, "\\");
    if (!help) {
        wr_buffer_put_text(out, " of ");
        put_escaped(out, series->group, "\\");
    }
    if (series->unit) {
        wr_buffer_put_text(out, " (");
        put_escaped(out, series->unit, "\\");
        wr_buffer_put_char(out, ')');
    }
    wr_buffer_put_char(out, '\n');
}

static void put_type(struct wr_buffer *out, const struct line *first, const struct line *end)
{
    uint32_t totals = 0, count = (uint32_t)(end - first);
    for (uint32_t i = 0; i < count; i++)
        totals += first[i].series->cumulative;
    wr_buffer_put_text(out, "# TYPE ");
    wr_buffer_put(out, first->text, first->name_length);
    wr_buffer_put_text(out, totals == 0 ? " gauge\n" : totals == count ? " counter\n" : " untyped\n");
}

static size_t put_value(char *out, const weir_sample *sample)
{
    if (sample->kind == WEIR_KIND_INT)
        return wr_number_put_int(out, sample->value.i64);
    if (!isinf(sample->value.f64))
        return wr_number_put_double(out, sample->value.f64);
    memcpy(out, sample->value.f64 > 0 ? "+Inf" : "-Inf", 4);
    return 4;
}

static void put_line(struct wr_encoder *encoder, const struct line *line)
{
    struct wr_buffer *out = &encoder->out;
    wr_buffer_put(out, line->text, line->length);
    if (!wr_buffer_reserve(out, WR_NUMBER_ROOM + 1))
        return;
    out->length += put_value(out->data + out->length, &encoder->batch->samples[line->sample]);
    out->data[out->length++] = '\n';
}

/* Series whose names and labels became equal are one series: its latest sample is written. */
static void put_family(struct wr_encoder *encoder, const struct line *first, const struct line *end)
{
    put_help(&encoder->out, first, end);
    put_type(&encoder->out, first, end);
    for (const struct line *line = first; line < end; line++)
        if (line + 1 == end || !is_same_text(line, line + 1))
            put_line(encoder, line);
}

static void put_document(struct wr_encoder *encoder)
{
    struct prometheus *prometheus = encoder->state;
    const struct line *line = prometheus->lines, *end = line + prometheus->line_count;
    if (line == end)
        return;
    qsort(prometheus->lines, prometheus->line_count, sizeof *line, compare_lines);
    while (line < end) {
        const struct line *next = line + 1;
        while (next < end && is_same_family(line, next))
            next++;
        put_family(encoder, line, next);
        line = next;
    }
}

static void put_event(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    if (!encoder->state)
        encoder->state = calloc(1, sizeof(struct prometheus));
    struct prometheus *prometheus = encoder->state;
    if (!prometheus) {
        encoder->out.failed = true;
        return;
    }
    prometheus->line_count = 0;
    bool recorded = record_all(encoder, first, end);
    find_texts(encoder);
    if (recorded)
        put_document(encoder);
    else
        encoder->out.failed = true;
}

const struct wr_format wr_format_prometheus = {
    .name = "prometheus",
    .summary = "Prometheus' text format: the last value of each series, with HELP and TYPE",
    .content_type = "text/plain; version=0.0.4; charset=utf-8",
    .shape = WEIR_FORMAT_DOCUMENTS,
    .put_prefix = put_prefix,
    .put_event = put_event,
    .free_state = free_state,
};
