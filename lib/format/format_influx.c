#include "format/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/array.h"
#include "text/common.h"
#include "text/hash.h"
#include "format/influx_times.h"
#include "registry/labels.h"
#include "segment/origin.h"
#include "text/number.h"

/* A point with the measurement, tags and time of an earlier one replaces its fields. So each value gets a time
 * that its field has not had: a repeated one is raised by a nanosecond. Values that are offered again get the
 * same times again, so that a repetition changes nothing in the database. */

struct influx_options {
    bool integers;
};

static const weir_option option_rows[] = {
    {"integers", WEIR_OPTION_BOOL, 0, "false", NULL,
     "write what was added as an integer as one (42i); no name may then ever be added in the other way too",
     offsetof(struct influx_options, integers)},
    {0},
};

/* A series: a field of a measurement with tags. */
struct field {
    uint64_t key;     /* hash of measurement, tags and field name; 0: not known yet */
    uint64_t line;    /* the last line that contains it */
    int64_t own_ns;   /* the last value's own time */
    int64_t given_ns; /* the time that it was given */
};

struct influx {
    struct wr_influx_times times; /* sequence numbers are those of the first samples of lines */
    struct field *fields;         /* by series id */
    uint32_t field_room;
    uint64_t labels; /* number of the label set that the keys contain */
    uint64_t line;
    char origin[WR_ORIGIN_TEXT]; /* that the sequence numbers in `times` belong to */
    uint64_t front;              /* the sequence number of the last batch */
};

static void free_state(void *state)
{
    struct influx *influx = state;
    wr_influx_times_fini(&influx->times);
    free(influx->fields);
    free(influx);
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* Control characters cannot be escaped: they become blanks. */
static char make_plain(char c)
{
    return ((unsigned char)c < 0x20 && c) || c == 0x7f ? ' ' : c;
}

/* Blanks, commas and equals signs are escaped by a backslash. A backslash itself cannot be escaped: where it
 * would be read as the escape of the following character, it becomes a slash. */
static void put_escaped(struct wr_buffer *out, const char *text, const char *marks)
{
    for (; *text; text++) {
        char c = make_plain(*text), next = make_plain(text[1]);
        if (c == '\\' && (!next || strchr("\\ ,=", next)))
            c = '/';
        if (strchr(marks, c))
            wr_buffer_put_char(out, '\\');
        wr_buffer_put_char(out, c);
    }
}

/* Keys that InfluxDB reserves get '_' appended. */
static void put_key(struct wr_buffer *out, const char *key)
{
    static const char *const reserved[] = {"time", "_field", "_measurement"};
    put_escaped(out, key, " ,=");
    for (size_t i = 0; i < WR_COUNT_OF(reserved); i++)
        if (strcmp(key, reserved[i]) == 0)
            wr_buffer_put_char(out, '_');
}

static void put_prefix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    struct wr_labels_walk walk = {0, 0};
    const weir_label *label;
    bool comment = series->group[0] == '#';
    if (comment)
        wr_buffer_put_char(out, '_');
    put_escaped(out, series->group + comment, " ,");
    while ((label = wr_labels_next(&walk, series, encoder->batch))) {
        if (!*label->value)
            continue;
        wr_buffer_put_char(out, ',');
        put_key(out, label->key);
        wr_buffer_put_char(out, '=');
        put_escaped(out, label->value, " ,=");
    }
    wr_buffer_put_char(out, ' ');
}

static void put_suffix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    (void)encoder;
    put_key(out, series->name);
    wr_buffer_put_char(out, '=');
}

/* ---- Fields ---------------------------------------------------------------------------------- */

/* The keys contain the labels of the configuration: when these change, all fields are different ones. */
static void check_labels(struct influx *influx, uint64_t labels)
{
    if (influx->labels == labels)
        return;
    for (uint32_t i = 0; i < influx->field_room; i++)
        influx->fields[i].key = 0;
    influx->labels = labels;
}

static struct field *make_field(struct wr_encoder *encoder, uint32_t series)
{
    struct influx *influx = encoder->state;
    const struct wr_affixes *affixes = wr_encoder_affixes(encoder, series);
    if (!affixes)
        return NULL;
    struct field *fields = wr_array_reserve(influx->fields, &influx->field_room, series + 1, sizeof *fields);
    if (!fields)
        return NULL;
    influx->fields = fields;
    struct field *field = &influx->fields[series];
    const char *text = wr_encoder_prefix(encoder, affixes);
    uint64_t key = wr_hash_bytes(0, text, (size_t)affixes->prefix + affixes->suffix);
    *field = (struct field){.key = key ? key : 1, .own_ns = INT64_MIN, .given_ns = INT64_MIN};
    return field;
}

/* Returns NULL if out of memory. */
static struct field *find_field(struct wr_encoder *encoder, uint32_t series)
{
    const struct influx *influx = encoder->state;
    if (series < influx->field_room && influx->fields[series].key)
        return &influx->fields[series];
    return make_field(encoder, series);
}

/* ---- Times ----------------------------------------------------------------------------------- */

/* Whether the time may be written: InfluxDB reserves the two lowest and the highest. */
static bool is_time(int64_t time_ns)
{
    return time_ns > INT64_MIN + 1 && time_ns < INT64_MAX;
}

/* Returns the first time from time_ns on that is free for all fields of the line, among samples [first, end).
 */
static int64_t find_time(struct wr_encoder *encoder, uint32_t first, uint32_t end, int64_t time_ns)
{
    const struct influx *influx = encoder->state;
    const weir_sample *samples = encoder->batch->samples;
    int64_t own_ns = time_ns;
    for (uint32_t i = first; i < end;) {
        const struct field *field = &influx->fields[samples[i].series];
        bool repeated = field->own_ns == own_ns && field->given_ns >= time_ns && is_time(field->given_ns);
        int64_t from_ns = repeated ? field->given_ns + 1 : time_ns;
        int64_t free_ns =
            field->line == influx->line ? wr_influx_times_find(&influx->times, field->key, from_ns) : time_ns;
        i = free_ns == time_ns ? i + 1 : first;
        time_ns = free_ns;
    }
    return time_ns;
}

static bool take_time(struct wr_encoder *encoder, uint32_t first, uint32_t end, int64_t time_ns)
{
    struct influx *influx = encoder->state;
    const weir_sample *samples = encoder->batch->samples;
    for (uint32_t i = first; i < end; i++) {
        struct field *field = &influx->fields[samples[i].series];
        if (field->line != influx->line)
            continue;
        if (!wr_influx_times_use(&influx->times, field->key, time_ns))
            return false;
        field->own_ns = samples[first].time_ns;
        field->given_ns = time_ns;
    }
    return true;
}

/* Sets the time of the line of samples [first, end). Returns false if out of memory. */
static bool give_time(struct wr_encoder *encoder, uint32_t first, uint32_t end, int64_t *time_ns)
{
    struct influx *influx = encoder->state;
    uint64_t sequence = encoder->batch->sequence + first;
    int64_t own_ns = encoder->batch->samples[first].time_ns;
    *time_ns = own_ns;
    if (wr_influx_times_recall(&influx->times, sequence, time_ns))
        return true;
    *time_ns = find_time(encoder, first, end, own_ns);
    return take_time(encoder, first, end, *time_ns) &&
           (*time_ns == own_ns || wr_influx_times_raise(&influx->times, sequence, *time_ns));
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static bool is_written(const struct wr_encoder *encoder, const weir_sample *sample)
{
    const struct influx_options *options = encoder->options;
    if (!is_time(sample->time_ns))
        return false;
    if (sample->kind == WEIR_KIND_INT)
        return options->integers || wr_number_is_double(sample->value.i64);
    return isfinite(sample->value.f64);
}

static size_t put_value(const struct wr_encoder *encoder, char *out, const weir_sample *sample)
{
    const struct influx_options *options = encoder->options;
    if (sample->kind != WEIR_KIND_INT)
        return wr_number_put_double(out, sample->value.f64);
    size_t length = wr_number_put_int(out, sample->value.i64);
    if (options->integers)
        out[length++] = 'i';
    return length;
}

/* Appends a field; before the first one of a line measurement and tags. */
static void put_field(struct wr_encoder *encoder, const weir_sample *sample, bool is_first)
{
    struct wr_buffer *out = &encoder->out;
    const struct wr_affixes *affixes = wr_encoder_affixes(encoder, sample->series);
    if (!affixes || !wr_buffer_reserve(out, (size_t)affixes->prefix + affixes->suffix + WR_NUMBER_ROOM + 2)) {
        out->failed = true;
        return;
    }
    char *at = out->data + out->length;
    if (is_first) {
        memcpy(at, wr_encoder_prefix(encoder, affixes), affixes->prefix);
        at += affixes->prefix;
    } else {
        *at++ = ',';
    }
    memcpy(at, wr_encoder_suffix(encoder, affixes), affixes->suffix);
    at += affixes->suffix;
    at += put_value(encoder, at, sample);
    out->length = (size_t)(at - out->data);
}

static bool have_same_prefix(struct wr_encoder *encoder, uint32_t series, uint32_t other)
{
    const struct wr_affixes *affixes = wr_encoder_affixes(encoder, series);
    if (!affixes || series == other)
        return affixes;
    struct wr_affixes one = *affixes;
    affixes = wr_encoder_affixes(encoder, other);
    return affixes && one.prefix == affixes->prefix &&
           memcmp(wr_encoder_prefix(encoder, &one), wr_encoder_prefix(encoder, affixes), one.prefix) == 0;
}

/* Returns the end of the line that starts with sample `first`: a sample with other tags, or of a field that the
 * line contains already. Marks the fields of the line. */
static uint32_t mark_line(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    struct influx *influx = encoder->state;
    const weir_sample *samples = encoder->batch->samples;
    influx->line++;
    for (uint32_t i = first; i < end; i++) {
        struct field *field = find_field(encoder, samples[i].series);
        if (!field) {
            encoder->out.failed = true;
            return end;
        }
        if (!is_written(encoder, &samples[i]))
            continue;
        if (field->line == influx->line || !have_same_prefix(encoder, samples[first].series, samples[i].series))
            return i;
        field->line = influx->line;
    }
    return end;
}

static void put_line(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    struct wr_buffer *out = &encoder->out;
    const weir_sample *samples = encoder->batch->samples;
    int64_t time_ns;
    if (!give_time(encoder, first, end, &time_ns)) {
        out->failed = true;
        return;
    }
    for (uint32_t i = first; i < end; i++)
        if (is_written(encoder, &samples[i]))
            put_field(encoder, &samples[i], i == first);
    if (!wr_buffer_reserve(out, WR_NUMBER_ROOM + 2))
        return;
    out->data[out->length++] = ' ';
    out->length += wr_number_put_int(out->data + out->length, time_ns);
    out->data[out->length++] = '\n';
}

static bool has_state(struct wr_encoder *encoder)
{
    if (!encoder->state)
        encoder->state = calloc(1, sizeof(struct influx));
    return encoder->state;
}

/* Only the rest of the last batch can be offered again: it has the same origin, and begins where that batch did
 * or later. */
static void follow_batch(struct influx *influx, const struct wr_encoder *encoder)
{
    const char *origin = wr_encoder_origin(encoder);
    if (strcmp(influx->origin, origin) != 0 || encoder->batch->sequence < influx->front) {
        wr_influx_times_restart(&influx->times);
        snprintf(influx->origin, sizeof influx->origin, "%s", origin);
    }
    influx->front = encoder->batch->sequence;
    wr_influx_times_forget(&influx->times, influx->front);
}

static void put_event(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    if (!has_state(encoder)) {
        encoder->out.failed = true;
        return;
    }
    struct influx *influx = encoder->state;
    check_labels(influx, encoder->labels);
    follow_batch(influx, encoder);
    for (uint32_t i = first; i < end && !encoder->out.failed;) {
        if (!is_written(encoder, &encoder->batch->samples[i])) {
            wr_encoder_omit(encoder, i++);
            continue;
        }
        uint32_t line_end = mark_line(encoder, i, end);
        if (encoder->out.failed)
            return;
        put_line(encoder, i, line_end);
        for (; i < line_end; i++)
            if (!is_written(encoder, &encoder->batch->samples[i]))
                wr_encoder_omit(encoder, i);
    }
    if (!encoder->out.failed)
        wr_influx_times_advance(&influx->times, encoder->batch->sequence + end);
}

const struct wr_format wr_format_influx = {
    .name = "influx",
    .summary = "InfluxDB's line protocol: a line for each event: group,labels name=value,... nanoseconds",
    .content_type = "text/plain; charset=utf-8",
    .shape = WEIR_FORMAT_LINES,
    .options = {option_rows, sizeof(weir_option), sizeof(struct influx_options)},
    .put_prefix = put_prefix,
    .put_suffix = put_suffix,
    .put_event = put_event,
    .free_state = free_state,
};
