#include "format/format.h"

#include "text/escape.h"
#include "text/number.h"

static void put_prefix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    (void)encoder;
    wr_escape_json_ascii(out, series->name);
    wr_buffer_put_text(out, ": ");
}

static void put_sample(struct wr_encoder *encoder, const weir_sample *sample)
{
    struct wr_buffer *out = &encoder->out;
    const struct wr_affixes *affixes = wr_encoder_affixes(encoder, sample->series);
    if (!affixes || !wr_buffer_reserve(out, (size_t)affixes->prefix + WR_NUMBER_ROOM)) {
        out->failed = true;
        return;
    }
    char *at = out->data + out->length;
    memcpy(at, wr_encoder_prefix(encoder, affixes), affixes->prefix);
    at += affixes->prefix;
    at += sample->kind == WEIR_KIND_INT ? wr_number_put_int(at, sample->value.i64)
                                        : wr_number_put_repr(at, sample->value.f64);
    out->length = (size_t)(at - out->data);
}

static void put_event(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    struct wr_buffer *out = &encoder->out;
    wr_buffer_put_char(out, '{');
    for (uint32_t i = first; i < end; i++) {
        if (i > first)
            wr_buffer_put(out, ", ", 2);
        put_sample(encoder, &encoder->batch->samples[i]);
    }
    wr_buffer_put(out, "}\n", 2);
}

static uint32_t choose_wanted(const void *options)
{
    (void)options;
    return WR_WANTS_NO_BUCKETS;
}

const struct wr_format wr_format_bai = {
    .name = "bai",
    .summary =
        "benchmarkai: a JSON object of names and values for each event, as Python's json.dumps writes it",
    .content_type = "application/x-ndjson",
    .shape = WEIR_FORMAT_LINES,
    .wanted = choose_wanted,
    .put_prefix = put_prefix,
    .put_event = put_event,
};
