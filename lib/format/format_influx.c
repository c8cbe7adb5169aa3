#include "format/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/array.h"
#include "text/common.h"
#include "text/escape.h"
#include "text/hash.h"
#include "format/influx_times.h"
#include "registry/labels_walk.h"
#include "registry/name.h"
#include "segment/origin.h"
#include "text/number.h"

/* A point with the measurement, tags and time of an earlier one replaces its fields. So each value gets a time
 * that its field has not had: a repeated one is raised by a nanosecond. Values that are offered again get the
 * same times again, so that a repetition changes nothing in the database. */

enum { TOTAL, DELTA };

enum { SEPARATOR_LONGEST = 8 };

struct influx_options {
    bool integers;
    int64_t temporality;
    const char *name_separator;
};

static const weir_option option_rows[] = {
    WEIR_OPTION_ROW(
        "integers", BOOL, 0, "false", NULL,
        "write what was added as an integer as one (42i); no name may then ever be added in the other way too",
        struct influx_options, integers),
    WEIR_OPTION_ROW("temporality", ENUM, 0, "total", "total|delta",
                    "of summaries of counters and histograms: running totals, or what came in the interval",
                    struct influx_options, temporality),
    WEIR_OPTION_ROW(
        "name_separator", STRING, 0, ".", NULL,
        "what is written for each dot in groups and names: \"_\" for names that PromQL takes without quotes",
        struct influx_options, name_separator),
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
    struct wr_influx_times times;
    struct field *fields; /* by series id */
    uint32_t field_room;
    uint64_t labels;      /* number of the label set that the keys contain */
    uint64_t definitions; /* weir_batch.definitions, when they were made */
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

/* What no backslash can escape is written as %XX: control characters; a backslash where it would be read as the
 * escape of the following character; in field names quotes, which VictoriaMetrics takes for the begin of a
 * text. So is a percent sign that would be read as one of these. Different names stay different. */

static bool is_encoded(const char *at, const char *others)
{
    unsigned char c = (unsigned char)*at, next = (unsigned char)at[1];
    if (c == '%')
        return wr_hex_digit(at[1], 'A') >= 0 && wr_hex_digit(at[2], 'A') >= 0;
    if (c == '\\')
        return next <= 0x20 || next == 0x7f || strchr("\\,=", at[1]) || strchr(others, at[1]);
    return c < 0x20 || c == 0x7f || strchr(others, *at);
}

/* Blanks, commas and equals signs are escaped by a backslash: those in marks. others: also written as %XX. */
static void put_escaped(struct wr_buffer *out, const char *text, const char *marks, const char *others)
{
    for (; *text; text++) {
        if (is_encoded(text, others)) {
            wr_escape_byte(out, *text);
            continue;
        }
        if (strchr(marks, *text))
            wr_buffer_put_char(out, '\\');
        wr_buffer_put_char(out, *text);
    }
}

/* Whether the key is one that InfluxDB reserves, or such a one with more '_' behind it. */
static bool is_reserved(const char *key)
{
    static const char *const reserved[] = {"time", "_field", "_measurement"};
    for (size_t i = 0; i < WR_COUNT_OF(reserved); i++) {
        size_t length = strlen(reserved[i]);
        if (strncmp(key, reserved[i], length) == 0 && key[length + strspn(key + length, "_")] == '\0')
            return true;
    }
    return false;
}

/* Keys that InfluxDB reserves get '_' appended; so do those that look like the result. */
static void put_key(struct wr_buffer *out, const char *key, const char *others)
{
    put_escaped(out, key, " ,=", others);
    if (is_reserved(key))
        wr_buffer_put_char(out, '_');
}

static const char *find_fault(const void *given)
{
    const struct influx_options *options = given;
    const char *separator = options->name_separator;
    size_t length = strlen(separator);
    return length && length <= SEPARATOR_LONGEST && strspn(separator, "._-:/") == length
               ? NULL
               : "name_separator must be 1 to 8 of the characters . _ - : /";
}

static bool keeps_dots(const struct wr_encoder *encoder)
{
    const struct influx_options *options = encoder->options;
    return strcmp(options->name_separator, ".") == 0;
}

/* Writes a name with the separator in place of dots to `out`, which has room for NAME_ROOM bytes. */
enum { NAME_ROOM = WR_NAME_LONGEST * SEPARATOR_LONGEST + 1 };

static const char *separate(const struct wr_encoder *encoder, const char *name, char *out)
{
    const struct influx_options *options = encoder->options;
    char *at = out;
    if (keeps_dots(encoder))
        return name;
    for (; *name; name++) {
        if (*name == '.')
            at = stpcpy(at, options->name_separator);
        else
            *at++ = *name;
    }
    *at = '\0';
    return out;
}

static void put_prefix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    char room[NAME_ROOM];
    struct wr_labels_walk walk = {0, 0};
    const weir_label *label;
    if (series->group[strspn(series->group, "_")] == '#') /* a line that begins with # is a comment */
        wr_buffer_put_char(out, '_');
    put_escaped(out, separate(encoder, series->group, room), " ,", "");
    while ((label = wr_labels_next(&walk, series, encoder->batch))) {
        if (!*label->value)
            continue;
        wr_buffer_put_char(out, ',');
        put_key(out, label->key, "");
        wr_buffer_put_char(out, '=');
        put_escaped(out, label->value, " ,=", "");
    }
    wr_buffer_put_char(out, ' ');
}

static void put_suffix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    char room[NAME_ROOM];
    put_key(out, separate(encoder, series->name, room), "\"");
    wr_buffer_put_char(out, '=');
}

/* ---- Fields ---------------------------------------------------------------------------------- */

/* The keys contain the labels of the configuration: when these change, all fields are different ones. So they
 * are when ids may stand for other series. */
static void check_keys(struct influx *influx, const struct wr_encoder *encoder)
{
    if (influx->labels == encoder->labels && influx->definitions == encoder->batch->definitions)
        return;
    for (uint32_t i = 0; i < influx->field_room; i++)
        influx->fields[i].key = 0;
    influx->labels = encoder->labels;
    influx->definitions = encoder->batch->definitions;
}

static struct field *make_field(struct wr_encoder *encoder, uint32_t series)
{
    struct influx *influx = encoder->state;
    const struct wr_affixes *affixes = wr_encoder_affixes(encoder, series);
    if (!affixes || !WR_ARRAY_HAS_ROOM(&influx->fields, &influx->field_room, series + 1))
        return NULL;
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

/* Each sample remembers the line's time: the line may be written again in parts, if it is too long. */
static bool raise_time(struct influx *influx, uint64_t first, uint64_t end, int64_t time_ns)
{
    for (uint64_t sequence = first; sequence < end; sequence++)
        if (!wr_influx_times_raise(&influx->times, sequence, time_ns))
            return false;
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
           (*time_ns == own_ns || raise_time(influx, sequence, encoder->batch->sequence + end, *time_ns));
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

/* Whether one of samples [first, i) of the line is a field of the same name, which has become equal. */
static bool has_name(const struct wr_encoder *encoder, uint32_t first, uint32_t i)
{
    const struct influx *influx = encoder->state;
    const weir_sample *samples = encoder->batch->samples;
    for (uint32_t j = first; j < i; j++) {
        const struct field *field = &influx->fields[samples[j].series];
        if (field->line == influx->line && field->key == influx->fields[samples[i].series].key)
            return true;
    }
    return false;
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
        if (!keeps_dots(encoder) && has_name(encoder, first, i))
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
    check_keys(influx, encoder);
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

/* A point of another process with the same tags, field and time would replace this one's: intervals end at the
 * same times. */
static uint32_t choose_wanted(const void *given)
{
    const struct influx_options *options = given;
    return WR_WANTS_INSTANCE | (options->temporality == DELTA ? WR_WANTS_DELTAS : 0);
}

const struct wr_format wr_format_influx = {
    .name = "influx",
    .summary = "InfluxDB's line protocol: a line for each event: group,labels name=value,... nanoseconds",
    .content_type = "text/plain; charset=utf-8",
    .shape = WEIR_FORMAT_LINES,
    .options = {option_rows, sizeof(weir_option), sizeof(struct influx_options)},
    .find_fault = find_fault,
    .wanted = choose_wanted,
    .put_prefix = put_prefix,
    .put_suffix = put_suffix,
    .put_event = put_event,
    .free_state = free_state,
};
