#include "format/format.h"

#include <inttypes.h>
#include <math.h>

#include "text/common.h"
#include "text/escape.h"
#include "registry/family.h"
#include "text/number.h"

struct json_options {
    bool origin, help;
};

static const weir_option option_rows[] = {
    WEIR_OPTION_ROW(
        "origin", BOOL, 0, "false", NULL,
        "write each sample's origin and sequence, by which one that is delivered twice can be recognised",
        struct json_options, origin),
    WEIR_OPTION_ROW("help", BOOL, 0, "false", NULL, "write each sample's help text, where its name has one",
                    struct json_options, help),
    {0},
};

static const struct json_options whole = {.help = true};
const void *const wr_format_json_whole = &whole;

static void put_prefix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    (void)encoder;
    wr_buffer_put_text(out, ",\"group\":");
    wr_escape_json(out, series->group);
    wr_buffer_put_text(out, ",\"name\":");
    wr_escape_json(out, series->name);
    wr_buffer_put_text(out, ",\"value\":");
}

static void put_suffix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    const struct json_options *options = encoder->options;
    wr_encoder_put_labels(encoder, series, out, ",\"labels\":", wr_escape_json);
    if (series->cumulative)
        wr_buffer_put_text(out, ",\"cumulative\":true");
    if (series->instrument != WEIR_VALUE)
        wr_buffer_put_format(out, ",\"instrument\":\"%s\"",
                             wr_family_instrument_name((enum weir_instrument)series->instrument));
    if (series->unit) {
        wr_buffer_put_text(out, ",\"unit\":");
        wr_escape_json(out, series->unit);
    }
    if (series->help && options && options->help) {
        wr_buffer_put_text(out, ",\"help\":");
        wr_escape_json(out, series->help);
    }
}

/* NaN and infinities are not valid in JSON: they are written as strings. */
static size_t put_special(char *out, double value)
{
    *out = '"';
    size_t length = wr_number_put_double(out + 1, value);
    out[length + 1] = '"';
    return length + 2;
}

static size_t put_value(char *out, const weir_sample *sample)
{
    if (sample->kind == WEIR_KIND_INT)
        return wr_number_put_int(out, sample->value.i64);
    if (WR_UNLIKELY(!isfinite(sample->value.f64)))
        return put_special(out, sample->value.f64);
    return wr_number_put_double(out, sample->value.f64);
}

static const char ending[] = "}\n";

/* Returns NULL unless the option is set. */
static const char *find_origin(const struct wr_encoder *encoder)
{
    const struct json_options *options = encoder->options;
    const char *origin = options && options->origin ? wr_encoder_origin(encoder) : "";
    return *origin ? origin : NULL;
}

/* Appends the parts that most samples do not have. */
static void put_rest(struct wr_encoder *encoder, const weir_sample *sample, const char *note,
                     const char *origin)
{
    struct wr_buffer *out = &encoder->out;
    if (note) {
        wr_buffer_put_text(out, ",\"metadata\":");
        wr_escape_json(out, note);
    }
    if (origin) {
        wr_buffer_put_text(out, ",\"origin\":");
        wr_escape_json(out, origin);
        uint64_t sequence = encoder->batch->sequence + (uint64_t)(sample - encoder->batch->samples);
        wr_buffer_put_format(out, ",\"sequence\":%" PRIu64, sequence);
    }
    wr_buffer_put_text(out, ending);
}

static void put_sample(struct wr_encoder *encoder, const weir_sample *sample)
{
    static const char opening[] = "{\"timestamp\":";
    enum { OPENING = sizeof opening - 1, TIME_ROOM = 40 + WR_ENCODER_SLACK };
    struct wr_buffer *out = &encoder->out;
    const struct wr_affixes *affixes = wr_encoder_affixes(encoder, sample->series);
    if (!affixes || !wr_buffer_reserve(out, OPENING + TIME_ROOM + WR_NUMBER_ROOM + (size_t)affixes->prefix +
                                                affixes->suffix + 2)) {
        out->failed = true;
        return;
    }
    char *at = out->data + out->length;
    memcpy(at, opening, OPENING);
    at += OPENING;
    at += wr_encoder_put_time(encoder, at, sample->time_ns, 9);
    at = wr_encoder_copy(at, wr_encoder_prefix(encoder, affixes), affixes->prefix);
    at += put_value(at, sample);
    at = wr_encoder_copy(at, wr_encoder_suffix(encoder, affixes), affixes->suffix);
    const char *note = wr_encoder_note(encoder, sample), *origin = find_origin(encoder);
    bool has_rest = note || origin;
    if (WR_LIKELY(!has_rest)) {
        memcpy(at, ending, sizeof ending - 1);
        at += sizeof ending - 1;
    }
    out->length = (size_t)(at - out->data);
    if (WR_UNLIKELY(has_rest))
        put_rest(encoder, sample, note, origin);
}

static void put_event(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        put_sample(encoder, &encoder->batch->samples[i]);
}

const struct wr_format wr_format_json = {
    .name = "json",
    .summary = "a JSON object for each sample, one a line: timestamp, group, name, value, labels, cumulative, "
               "instrument, unit, metadata",
    .content_type = "application/x-ndjson",
    .shape = WEIR_FORMAT_LINES,
    .options = {option_rows, sizeof(weir_option), sizeof(struct json_options)},
    .put_prefix = put_prefix,
    .put_suffix = put_suffix,
    .put_event = put_event,
};
