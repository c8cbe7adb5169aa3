#include "format/format.h"

#include <math.h>

#include "text/common.h"
#include "registry/labels.h"
#include "text/number.h"
#include "format/metric_path.h"

/* All values are gauges, including running totals. A StatsD counter takes increments: if one is lost or sent
 * twice, the sum stays wrong, while a total is correct again with the next value. */

struct statsd_options {
    bool tags;
};

static const weir_option option_rows[] = {
    {"tags", WEIR_OPTION_BOOL, 0, "false", NULL, "write labels as DogStatsD's tags: name:value|g|#key:value",
     offsetof(struct statsd_options, tags)},
    {0},
};

static const struct wr_metric_path_rules of_name = {.strip = ":|@#,", .replace = ""};
static const struct wr_metric_path_rules of_value = {.strip = "|@#,", .replace = ""};

static void put_prefix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    (void)encoder;
    wr_metric_path_put(out, series->group, &of_name);
    wr_buffer_put_char(out, '.');
    wr_metric_path_put(out, series->name, &of_name);
    wr_buffer_put_char(out, ':');
}

static void put_suffix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    const struct statsd_options *options = encoder->options;
    struct wr_labels_walk walk = {0, 0};
    const weir_label *label;
    const char *before = "|#";
    wr_buffer_put_text(out, "|g");
    while (options->tags && (label = wr_labels_next(&walk, series, encoder->batch))) {
        wr_buffer_put_text(out, before);
        wr_metric_path_put_word(out, label->key, &of_name);
        if (*label->value) {
            wr_buffer_put_char(out, ':');
            wr_metric_path_put_word(out, label->value, &of_value);
        }
        before = ",";
    }
    wr_buffer_put_char(out, '\n');
}

/* A value with a sign changes a gauge instead of setting it. So before a negative value the gauge is set to 0.
 */
static bool is_negative(const weir_sample *sample)
{
    return sample->kind == WEIR_KIND_INT ? sample->value.i64 < 0 : sample->value.f64 < 0;
}

static size_t put_value(char *out, const weir_sample *sample)
{
    if (sample->kind == WEIR_KIND_INT)
        return wr_number_put_int(out, sample->value.i64);
    return wr_number_put_double(out, sample->value.f64 == 0 ? 0 : sample->value.f64); /* -0 would have a sign */
}

static char *put_line(char *at, const struct wr_encoder *encoder, const struct wr_affixes *affixes,
                      const weir_sample *sample)
{
    memcpy(at, wr_encoder_prefix(encoder, affixes), affixes->prefix);
    at += affixes->prefix;
    if (sample)
        at += put_value(at, sample);
    else
        *at++ = '0';
    memcpy(at, wr_encoder_suffix(encoder, affixes), affixes->suffix);
    return at + affixes->suffix;
}

static void put_sample(struct wr_encoder *encoder, const weir_sample *sample)
{
    struct wr_buffer *out = &encoder->out;
    const struct wr_affixes *affixes = wr_encoder_affixes(encoder, sample->series);
    if (!affixes || !wr_buffer_reserve(out, 2 * ((size_t)affixes->prefix + affixes->suffix + WR_NUMBER_ROOM))) {
        out->failed = true;
        return;
    }
    char *at = out->data + out->length;
    if (is_negative(sample))
        at = put_line(at, encoder, affixes, NULL);
    at = put_line(at, encoder, affixes, sample);
    out->length = (size_t)(at - out->data);
}

static void put_event(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        const weir_sample *sample = &encoder->batch->samples[i];
        if (sample->kind == WEIR_KIND_INT || isfinite(sample->value.f64))
            put_sample(encoder, sample);
        else
            wr_encoder_omit(encoder, i);
    }
}

const struct wr_format wr_format_statsd = {
    .name = "statsd",
    .summary = "StatsD's gauges, a line for each sample: group.name:value|g",
    .content_type = "text/plain; charset=utf-8",
    .shape = WEIR_FORMAT_LINES,
    .options = {option_rows, sizeof(weir_option), sizeof(struct statsd_options)},
    .put_prefix = put_prefix,
    .put_suffix = put_suffix,
    .put_event = put_event,
};
