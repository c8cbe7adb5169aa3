#include "format/format.h"

#include <math.h>
#include <string.h>

#include "text/common.h"
#include "registry/labels_walk.h"
#include "text/number.h"
#include "text/utf8.h"

enum { STYLE_WEIR, STYLE_PYTHON };

struct text_options {
    int64_t style;
    bool integer_durations;
};

static const weir_option option_rows[] = {
    WEIR_OPTION_ROW("style", ENUM, 0, "weir", "weir|python",
                    "python: times and numbers as Python prints them, without labels and metadata, as "
                    "torchelastic's console "
                    "does",
                    struct text_options, style),
    WEIR_OPTION_ROW("integer_durations", BOOL, 0, "false", NULL,
                    "with style python: cut values whose name ends in .duration.ms to integers",
                    struct text_options, integer_durations),
    {0},
};

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
    const struct text_options *options = encoder->options;
    if (options->style == STYLE_PYTHON)
        return;
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

/* ---- As Python prints it --------------------------------------------------------------------- */

static size_t put_special(char *out, double value)
{
    const char *text = isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    memcpy(out, text, strlen(text));
    return strlen(text);
}

static bool is_duration(const weir_series *series)
{
    static const char ending[] = ".duration.ms";
    size_t length = strlen(series->name);
    return length >= sizeof ending - 1 && strcmp(series->name + length - (sizeof ending - 1), ending) == 0;
}

/* As long as the cut value is an integer that a double represents. */
static bool is_cut(const struct wr_encoder *encoder, const weir_sample *sample)
{
    const struct text_options *options = encoder->options;
    return options->integer_durations && fabs(sample->value.f64) < 0x1p53 &&
           is_duration(weir_batch_series(encoder->batch, sample));
}

static size_t put_python_value(const struct wr_encoder *encoder, char *out, const weir_sample *sample)
{
    if (sample->kind == WEIR_KIND_INT)
        return wr_number_put_int(out, sample->value.i64);
    if (!isfinite(sample->value.f64))
        return put_special(out, sample->value.f64);
    return is_cut(encoder, sample) ? wr_number_put_int(out, (int64_t)sample->value.f64)
                                   : wr_number_put_repr(out, sample->value.f64);
}

/* time.time() converts the nanoseconds to a double and then divides. */
static size_t put_python_time(char *out, int64_t time_ns)
{
    return wr_number_put_repr(out, (double)time_ns / 1e9);
}

/* ---- A line ---------------------------------------------------------------------------------- */

/* python: a constant, so that lines of the usual style take no instruction more. */
WR_ALWAYS_INLINE void put_sample(struct wr_encoder *encoder, const weir_sample *sample, bool python)
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
    at += python ? put_python_time(at, sample->time_ns) : wr_encoder_put_time(encoder, at, sample->time_ns, 6);
    at = wr_encoder_copy(at, wr_encoder_prefix(encoder, affixes), affixes->prefix);
    at += python ? put_python_value(encoder, at, sample) : put_value(at, sample);
    at = wr_encoder_copy(at, wr_encoder_suffix(encoder, affixes), affixes->suffix);
    const char *note = python ? NULL : wr_encoder_note(encoder, sample);
    if (WR_LIKELY(note == NULL))
        *at++ = '\n';
    out->length = (size_t)(at - out->data);
    if (WR_UNLIKELY(note != NULL))
        put_note(out, note);
}

WR_NEVER_INLINE static void put_python_event(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        put_sample(encoder, &encoder->batch->samples[i], true);
}

static void put_event(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    const struct text_options *options = encoder->options;
    if (WR_UNLIKELY(options->style == STYLE_PYTHON)) {
        put_python_event(encoder, first, end);
        return;
    }
    for (uint32_t i = first; i < end; i++)
        put_sample(encoder, &encoder->batch->samples[i], false);
}

static uint32_t choose_wanted(const void *given)
{
    const struct text_options *options = given;
    return options->style == STYLE_PYTHON ? WR_WANTS_NO_BUCKETS : 0;
}

const struct wr_format wr_format_text = {
    .name = "text",
    .summary = "a line for each sample, for people: [seconds][group]: name=value {labels}",
    .content_type = "text/plain; charset=utf-8",
    .shape = WEIR_FORMAT_LINES,
    .options = {option_rows, sizeof(weir_option), sizeof(struct text_options)},
    .wanted = choose_wanted,
    .put_prefix = put_prefix,
    .put_suffix = put_suffix,
    .put_event = put_event,
};
