#include "format/format.h"

#include <math.h>

#include "text/common.h"
#include "registry/labels_walk.h"
#include "text/number.h"
#include "format/base_unit.h"
#include "format/metric_path.h"

/* Increments are counters (c), and so is what an interval has added to a total. Values of a histogram are
 * timers (ms) or DogStatsD's histograms (h). Everything else is a gauge (g), running totals too. */

enum { OF_TIMERS, OF_HISTOGRAMS };

struct statsd_options {
    bool tags;
    int64_t histograms;
};

static const weir_option option_rows[] = {
    WEIR_OPTION_ROW("tags", BOOL, 0, "false", NULL, "write labels as DogStatsD's tags: name:value|g|#key:value",
                    struct statsd_options, tags),
    WEIR_OPTION_ROW(
        "histograms", ENUM, 0, "ms", "ms|h",
        "the type of a histogram's values: timers, with times in milliseconds, or DogStatsD's histograms",
        struct statsd_options, histograms),
    {0},
};

static const struct wr_metric_path_rules name_rules = {.strip = ":|@#,", .replace = ""};
static const struct wr_metric_path_rules value_rules = {.strip = "|@#,", .replace = ""};

static void put_prefix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    const struct statsd_options *options = encoder->options;
    wr_metric_path_put_series(out, series->group, series, options->tags, &name_rules);
    wr_buffer_put_char(out, ':');
}

static void put_suffix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    const struct statsd_options *options = encoder->options;
    struct wr_labels_walk walk = {0, 0};
    const weir_label *label;
    const char *before = "|#";
    while (options->tags && (label = wr_labels_next(&walk, series, encoder->batch))) {
        wr_buffer_put_text(out, before);
        wr_metric_path_put_word(out, label->key, &name_rules);
        if (*label->value) {
            wr_buffer_put_char(out, ':');
            wr_metric_path_put_word(out, label->value, &value_rules);
        }
        before = ",";
    }
    wr_buffer_put_char(out, '\n');
}

/* ---- Types ----------------------------------------------------------------------------------- */

enum type { GAUGE, COUNTER, TIMER, HISTOGRAM };

static enum type type_of(const struct wr_encoder *encoder, const weir_series *series, const weir_sample *sample)
{
    const struct statsd_options *options = encoder->options;
    if (sample->flags & WR_SAMPLE_INCREMENT)
        return COUNTER;
    if (series->cumulative)
        return GAUGE;
    switch (series->instrument) {
    case WEIR_COUNTER: return COUNTER;
    case WEIR_HISTOGRAM: return options->histograms == OF_TIMERS ? TIMER : HISTOGRAM;
    default: return GAUGE;
    }
}

static char *put_type(char *at, enum type type)
{
    static const char *const texts[] = {"|g", "|c", "|ms", "|h"};
    size_t length = strlen(texts[type]);
    memcpy(at, texts[type], length);
    return at + length;
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* In milliseconds; other units stay as they are. */
static double convert_to_ms(double value, const char *unit)
{
    const struct wr_base_unit *base = wr_base_unit_find(unit);
    if (!base || strcmp(base->base, "seconds") != 0 || strcmp(unit, "ms") == 0)
        return value;
    double ms = base->multiplier * 1000 / base->divisor; /* that one has: 1000, 60000, or below 1 */
    return ms >= 1 ? value * ms : value / (base->divisor / 1000);
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
                      const weir_sample *sample, enum type type)
{
    static const weir_sample zero = {.kind = WEIR_KIND_INT};
    memcpy(at, wr_encoder_prefix(encoder, affixes), affixes->prefix);
    at += affixes->prefix;
    at += put_value(at, sample ? sample : &zero);
    at = put_type(at, type);
    memcpy(at, wr_encoder_suffix(encoder, affixes), affixes->suffix);
    return at + affixes->suffix;
}

/* ---- A sample -------------------------------------------------------------------------------- */

/* A timer that is converted is a double. */
static void convert(weir_sample *sample, const weir_series *series)
{
    double value = sample->kind == WEIR_KIND_INT ? (double)sample->value.i64 : sample->value.f64;
    double converted = convert_to_ms(value, series->unit);
    if (converted == value)
        return;
    sample->kind = WEIR_KIND_DOUBLE;
    sample->value.f64 = converted;
}

/* Returns false if it cannot be represented: StatsD refuses timers below 0. */
static bool put_sample(struct wr_encoder *encoder, const weir_sample *given)
{
    enum { TYPE_ROOM = 3 };
    struct wr_buffer *out = &encoder->out;
    const weir_series *series = weir_batch_series(encoder->batch, given);
    enum type type = type_of(encoder, series, given);
    weir_sample sample = *given;
    if (type == TIMER)
        convert(&sample, series);
    if ((sample.kind != WEIR_KIND_INT && !isfinite(sample.value.f64)) ||
        (type == TIMER && is_negative(&sample)))
        return false;
    const struct wr_affixes *affixes = wr_encoder_affixes(encoder, sample.series);
    if (!affixes ||
        !wr_buffer_reserve(out, 2 * ((size_t)affixes->prefix + affixes->suffix + WR_NUMBER_ROOM + TYPE_ROOM))) {
        out->failed = true;
        return true;
    }
    char *at = out->data + out->length;
    if (type == GAUGE && is_negative(&sample))
        at = put_line(at, encoder, affixes, NULL, type);
    at = put_line(at, encoder, affixes, &sample, type);
    out->length = (size_t)(at - out->data);
    return true;
}

static void put_event(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        if (!put_sample(encoder, &encoder->batch->samples[i]))
            wr_encoder_omit(encoder, i);
}

const struct wr_format wr_format_statsd = {
    .name = "statsd",
    .summary = "StatsD's counters, gauges and timers, a line for each sample: group.name:value|g",
    .content_type = "text/plain; charset=utf-8",
    .shape = WEIR_FORMAT_LINES,
    .options = {option_rows, sizeof(weir_option), sizeof(struct statsd_options)},
    .wants = WR_WANTS_DELTAS,
    .put_prefix = put_prefix,
    .put_suffix = put_suffix,
    .put_event = put_event,
};
