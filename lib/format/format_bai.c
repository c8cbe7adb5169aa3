#include "format/format.h"

#include <string.h>

#include "format/iso_time.h"
#include "registry/labels_walk.h"
#include "text/common.h"
#include "text/escape.h"
#include "text/number.h"

/* What benchmarkai's emit writes, and the records that its metrics-pusher makes of that for its backends. */
enum { STYLE_EMIT, STYLE_STDOUT, STYLE_ELASTICSEARCH, STYLE_KAFKA };

struct bai_options {
    int64_t style;
};

static const weir_option option_rows[] = {
    WEIR_OPTION_ROW("style", ENUM, 0, "emit", "emit|stdout|elasticsearch|kafka",
                    "stdout, elasticsearch, kafka: the records of metrics-pusher's backends, with labels",
                    struct bai_options, style),
    {0},
};

static int64_t find_style(const struct bai_options *options)
{
    return options ? options->style : STYLE_EMIT;
}

static int64_t style_of(const struct wr_encoder *encoder)
{
    return find_style(encoder->options);
}

/* ---- Constant text --------------------------------------------------------------------------- */

/* The pusher's own labels come before the others. */
enum { RANKS = 3 };

static int rank_of(const char *key)
{
    return strcmp(key, "action-id") == 0 ? 0 : strcmp(key, "client-id") == 0 ? 1 : 2;
}

/* Members of a document that replace labels of the same name. */
static bool is_member(const char *key)
{
    return strcmp(key, "timestamp") == 0 || strcmp(key, "metrics") == 0 || strcmp(key, "tracing") == 0;
}

/* Appends "key": "value", separated by commas. Returns how many. */
static size_t put_labels(const struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    bool is_document = style_of(encoder) == STYLE_ELASTICSEARCH;
    size_t count = 0;
    for (int rank = 0; rank < RANKS; rank++) {
        struct wr_labels_walk walk = {0, 0};
        const weir_label *label;
        while ((label = wr_labels_next(&walk, series, encoder->batch))) {
            if (rank_of(label->key) != rank || (is_document && is_member(label->key)))
                continue;
            wr_buffer_put_text(out, count++ ? ", " : "");
            wr_escape_json_ascii(out, label->key);
            wr_buffer_put_text(out, ": ");
            wr_escape_json_ascii(out, label->value);
        }
    }
    return count;
}

/* Of a value that `labels` replaces in the style stdout there is none. */
static void put_prefix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    int64_t style = style_of(encoder);
    if (style == STYLE_STDOUT && strcmp(series->name, "labels") == 0)
        return;
    if (style == STYLE_KAFKA)
        wr_buffer_put_text(out, "{\"name\": ");
    wr_escape_json_ascii(out, series->name);
    wr_buffer_put_text(out, style == STYLE_KAFKA ? ", \"value\": " : ": ");
}

static void put_suffix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    switch (style_of(encoder)) {
    case STYLE_STDOUT:
        wr_buffer_put_text(out, "\"labels\": {");
        put_labels(encoder, series, out);
        wr_buffer_put_text(out, "}");
        break;
    case STYLE_KAFKA:
        wr_buffer_put_text(out, ", \"labels\": {");
        put_labels(encoder, series, out);
        wr_buffer_put_text(out, "}}\n");
        break;
    case STYLE_ELASTICSEARCH:
        if (put_labels(encoder, series, out))
            wr_buffer_put_text(out, ", ");
        break;
    default: break;
    }
}

/* ---- Samples --------------------------------------------------------------------------------- */

static void put_labels_of(struct wr_encoder *encoder, const struct wr_affixes *affixes)
{
    wr_buffer_put(&encoder->out, wr_encoder_suffix(encoder, affixes), affixes->suffix);
}

/* ---- Objects for events ---------------------------------------------------------------------- */

/* Returns the end of the samples that have the labels of the first one. */
static uint32_t find_labels_end(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    const weir_sample *samples = encoder->batch->samples;
    struct wr_affixes one, other;
    if (style_of(encoder) == STYLE_EMIT || !wr_encoder_copy_affixes(encoder, &samples[first], &one))
        return end;
    for (uint32_t i = first + 1; i < end && wr_encoder_copy_affixes(encoder, &samples[i], &other); i++)
        if (!wr_encoder_has_same_suffix(encoder, &one, &other))
            return i;
    return end;
}

/* In the style stdout, labels replace a value of that name, at its place. Returns how many values there are. */
static uint32_t put_members(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    struct wr_buffer *out = &encoder->out;
    struct wr_affixes affixes = {0};
    uint32_t values = 0, members = 0;
    bool has_labels = style_of(encoder) != STYLE_STDOUT;
    for (uint32_t i = first; i < end; i++) {
        if (!wr_encoder_copy_affixes(encoder, &encoder->batch->samples[i], &affixes))
            return 0;
        bool is_replaced = !affixes.prefix;
        if (is_replaced)
            wr_encoder_omit(encoder, i);
        if (is_replaced && has_labels)
            continue;
        if (members++)
            wr_buffer_put(out, ", ", 2);
        if (is_replaced)
            put_labels_of(encoder, &affixes);
        else
            wr_encoder_put_repr(encoder, &encoder->batch->samples[i], &affixes);
        values += !is_replaced;
        has_labels |= is_replaced;
    }
    if (!has_labels) {
        wr_buffer_put(out, ", ", 2);
        put_labels_of(encoder, &affixes);
    }
    return values;
}

/* Appends 2026-11-22T09:09:30.284552 in UTC, as datetime.isoformat() does: without decimals if they are 0. */
static void put_iso_time(struct wr_buffer *out, int64_t time_ns)
{
    char text[WR_ISO_TIME];
    wr_iso_time_put(text, time_ns);
    bool is_whole = memcmp(text + WR_ISO_TIME_WHOLE, ".000000", WR_ISO_TIME - WR_ISO_TIME_WHOLE) == 0;
    wr_buffer_put(out, text, is_whole ? WR_ISO_TIME_WHOLE : WR_ISO_TIME);
}

static void open_document(struct wr_encoder *encoder, const weir_sample *sample)
{
    struct wr_affixes affixes;
    if (!wr_encoder_copy_affixes(encoder, sample, &affixes))
        return;
    put_labels_of(encoder, &affixes);
    wr_buffer_put_text(&encoder->out, "\"timestamp\": \"");
    put_iso_time(&encoder->out, sample->time_ns);
    wr_buffer_put_text(&encoder->out, "\", \"metrics\": {");
}

/* Appends one object, or nothing if it would have no values. */
static void put_object(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    struct wr_buffer *out = &encoder->out;
    size_t start = out->length;
    bool is_document = style_of(encoder) == STYLE_ELASTICSEARCH;
    wr_buffer_put_char(out, '{');
    if (is_document)
        open_document(encoder, &encoder->batch->samples[first]);
    uint32_t values = put_members(encoder, first, end);
    wr_buffer_put_text(out, is_document ? "}, \"tracing\": {\"service\": \"metrics-pusher\"}}\n" : "}\n");
    if (!values)
        out->length = start;
}

/* ---- A record for each sample ---------------------------------------------------------------- */

static int64_t to_ms(int64_t time_ns)
{
    int64_t ms = time_ns / WR_NS_PER_MS;
    return ms - (time_ns < ms * WR_NS_PER_MS);
}

static void put_record(struct wr_encoder *encoder, const weir_sample *sample)
{
    struct wr_buffer *out = &encoder->out;
    struct wr_affixes affixes;
    if (!wr_encoder_copy_affixes(encoder, sample, &affixes))
        return;
    wr_encoder_put_repr(encoder, sample, &affixes);
    wr_buffer_put_text(out, ", \"timestamp\": ");
    if (wr_buffer_reserve(out, WR_NUMBER_ROOM))
        out->length += wr_number_put_int(out->data + out->length, to_ms(sample->time_ns));
    put_labels_of(encoder, &affixes);
}

static void put_event(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    bool has_records = style_of(encoder) == STYLE_KAFKA;
    for (uint32_t i = first, next; i < end && !encoder->out.failed; i = next) {
        next = has_records ? i + 1 : find_labels_end(encoder, i, end);
        if (has_records)
            put_record(encoder, &encoder->batch->samples[i]);
        else
            put_object(encoder, i, next);
    }
}

/* What reads the records of the style kafka keeps one value for a series. */
static uint32_t choose_wanted(const void *options)
{
    switch (find_style(options)) {
    case STYLE_EMIT: return WR_WANTS_NO_BUCKETS;
    case STYLE_KAFKA: return WR_WANTS_INSTANCE;
    default: return 0;
    }
}

const struct wr_format wr_format_bai = {
    .name = "bai",
    .summary =
        "benchmarkai: a JSON object of names and values for each event, as Python's json.dumps writes it",
    .content_type = "application/x-ndjson",
    .shape = WEIR_FORMAT_LINES,
    .options = {option_rows, sizeof(weir_option), sizeof(struct bai_options)},
    .wanted = choose_wanted,
    .put_prefix = put_prefix,
    .put_suffix = put_suffix,
    .put_event = put_event,
};
