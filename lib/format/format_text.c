#include "format/format.h"

#include "text/common.h"
#include "registry/labels.h"
#include "text/number.h"
#include "text/utf8.h"

/* On a terminal the time is faint and the group coloured (ECMA-48: 2 faint, 36 cyan, 0 normal). */
static const char faint[] = "\x1b[2m", group_color[] = "\x1b[36m", normal[] = "\x1b[0m";

static void put_color(struct wr_buffer *out, const struct wr_encoder *encoder, const char *color)
{
    if (encoder->color)
        wr_buffer_put_text(out, color);
}

/* The part after the time, which is not constant. */
static void put_prefix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    wr_buffer_put_char(out, ']');
    put_color(out, encoder, normal);
    put_color(out, encoder, group_color);
    wr_buffer_put_char(out, '[');
    wr_utf8_show(out, series->group, strlen(series->group), 0);
    wr_buffer_put_char(out, ']');
    put_color(out, encoder, normal);
    wr_buffer_put_text(out, ": ");
    wr_utf8_show(out, series->name, strlen(series->name), 0);
    wr_buffer_put_char(out, '=');
}

static void put_quoted(struct wr_buffer *out, const char *text)
{
    wr_buffer_put_char(out, '"');
    wr_utf8_show(out, text, strlen(text), '"');
    wr_buffer_put_char(out, '"');
}

static void put_suffix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    struct wr_labels_walk walk = {0, 0};
    const weir_label *label;
    const char *before = " {";
    while ((label = wr_labels_next(&walk, series, encoder->batch))) {
        wr_buffer_put_text(out, before);
        wr_utf8_show(out, label->key, strlen(label->key), 0);
        wr_buffer_put_char(out, '=');
        put_quoted(out, label->value);
        before = ",";
    }
    if (*before == ',')
        wr_buffer_put_char(out, '}');
}

static void put_note(struct wr_buffer *out, const char *note)
{
    wr_buffer_put_text(out, " metadata=");
    put_quoted(out, note);
    wr_buffer_put_char(out, '\n');
}

static size_t put_value(char *out, const weir_sample *sample)
{
    return sample->kind == WEIR_KIND_INT ? wr_number_put_int(out, sample->value.i64)
                                         : wr_number_put_double(out, sample->value.f64);
}

static void put_sample(struct wr_encoder *encoder, const weir_sample *sample)
{
    enum { TIME_ROOM = 48 + WR_ENCODER_SLACK };
    struct wr_buffer *out = &encoder->out;
    const struct wr_affixes *affixes = wr_encoder_affixes(encoder, sample->series);
    if (!affixes ||
        !wr_buffer_reserve(out, TIME_ROOM + WR_NUMBER_ROOM + (size_t)affixes->prefix + affixes->suffix + 1)) {
        out->failed = true;
        return;
    }
    char *at = out->data + out->length;
    if (encoder->color) {
        memcpy(at, faint, sizeof faint - 1);
        at += sizeof faint - 1;
    }
    *at++ = '[';
    at += wr_encoder_put_time(encoder, at, sample->time_ns, 6);
    at = wr_encoder_copy(at, wr_encoder_prefix(encoder, affixes), affixes->prefix);
    at += put_value(at, sample);
    at = wr_encoder_copy(at, wr_encoder_suffix(encoder, affixes), affixes->suffix);
    const char *note = wr_encoder_note(encoder, sample);
    if (WR_LIKELY(note == NULL))
        *at++ = '\n';
    out->length = (size_t)(at - out->data);
    if (WR_UNLIKELY(note != NULL))
        put_note(out, note);
}

static void put_event(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        put_sample(encoder, &encoder->batch->samples[i]);
}

const struct wr_format wr_format_text = {
    .name = "text",
    .summary = "a line for each sample, for people: [seconds][group]: name=value {labels}",
    .content_type = "text/plain; charset=utf-8",
    .shape = WEIR_FORMAT_LINES,
    .put_prefix = put_prefix,
    .put_suffix = put_suffix,
    .put_event = put_event,
};
