#include "format/format.h"

#include <math.h>

#include "text/common.h"
#include "registry/labels_walk.h"
#include "text/number.h"
#include "format/metric_path.h"

enum { TOTAL, DELTA };
enum { NAMES_WEIR, NAMES_STATSD };

struct graphite_options {
    bool tags;
    int64_t temporality;
    int64_t names;
};

static const weir_option option_rows[] = {
    WEIR_OPTION_ROW("tags", BOOL, 0, "false", NULL, "write labels as tags: path;key=value",
                    struct graphite_options, tags),
    WEIR_OPTION_ROW("temporality", ENUM, 0, "total", "total|delta",
                    "of summaries of counters and histograms: running totals, or what came in the interval",
                    struct graphite_options, temporality),
    WEIR_OPTION_ROW("names", ENUM, 0, "weir", "weir|statsd",
                    "statsd: summaries as the server StatsD writes them: stats.counters.PATH.rate",
                    struct graphite_options, names),
    {0},
};

/* Characters with a meaning in Graphite's query language, or that cannot be part of a file name. */
static const struct wr_metric_path_rules path_rules = {.strip = "", .replace = ";/\\\"'(){}[]*?,|="};
static const struct wr_metric_path_rules key_rules = {.encode = true, .strip = "", .replace = ";!^="};
static const struct wr_metric_path_rules value_rules = {.encode = true, .strip = "", .replace = ";"};

/* The tag "name" is reserved for the path, and gets '_' appended; a value must not begin with '~', and gets '_'
 * in front. So do those that look like the result. */
static void put_tag(struct wr_buffer *out, const weir_label *label)
{
    bool tilde = label->value[strspn(label->value, "_")] == '~';
    bool reserved = strncmp(label->key, "name", 4) == 0 && !label->key[4 + strspn(label->key + 4, "_")];
    wr_buffer_put_char(out, ';');
    wr_metric_path_put_word(out, label->key, &key_rules);
    if (reserved)
        wr_buffer_put_char(out, '_');
    wr_buffer_put_text(out, tilde ? "=_" : "=");
    wr_metric_path_put_word(out, label->value, &value_rules);
}

/* As a source counts the members of StatsD's sets. */
static bool is_set(const weir_series *series)
{
    return series->instrument == WEIR_GAUGE && series->unit && strcmp(series->unit, "members") == 0;
}

/* Parts of a counter are its instrument's, those of other summaries have none. */
static const char *find_namespace(const weir_series *series)
{
    if (is_set(series))
        return "stats.sets.";
    switch (series->instrument) {
    case WEIR_COUNTER: return "stats.counters.";
    case WEIR_GAUGE: return "stats.gauges.";
    default: return series->cumulative ? "stats.gauges." : "stats.timers.";
    }
}

/* The group that a source "statsd" gives to what was sent, whose names are whole paths. NULL: none. */
static const char *find_group(const struct graphite_options *options, const weir_series *series)
{
    return options->names == NAMES_STATSD && strcmp(series->group, "statsd") == 0 ? NULL : series->group;
}

static void put_prefix(struct wr_encoder *encoder, const weir_series *series, struct wr_buffer *out)
{
    const struct graphite_options *options = encoder->options;
    struct wr_labels_walk walk = {0, 0};
    const weir_label *label;
    if (options->names == NAMES_STATSD)
        wr_buffer_put_text(out, find_namespace(series));
    wr_metric_path_put_series(out, find_group(options, series), series, options->tags, &path_rules);
    if (options->names == NAMES_STATSD && is_set(series))
        wr_buffer_put_text(out, ".count");
    while (options->tags && (label = wr_labels_next(&walk, series, encoder->batch)))
        if (*label->value)
            put_tag(out, label);
    wr_buffer_put_char(out, ' ');
}

/* Graphite has no times before 1970, and takes -1 as the time of arrival. */
static bool is_written(const weir_sample *sample)
{
    return sample->time_ns >= 0 && (sample->kind == WEIR_KIND_INT || isfinite(sample->value.f64));
}

static void put_sample(struct wr_encoder *encoder, const weir_sample *sample)
{
    struct wr_buffer *out = &encoder->out;
    const struct wr_affixes *affixes = wr_encoder_affixes(encoder, sample->series);
    if (!affixes || !wr_buffer_reserve(out, (size_t)affixes->prefix + 2 * WR_NUMBER_ROOM + 2)) {
        out->failed = true;
        return;
    }
    char *at = out->data + out->length;
    memcpy(at, wr_encoder_prefix(encoder, affixes), affixes->prefix);
    at += affixes->prefix;
    at += sample->kind == WEIR_KIND_INT ? wr_number_put_int(at, sample->value.i64)
                                        : wr_number_put_double(at, sample->value.f64);
    *at++ = ' ';
    at += wr_number_put_int(at, sample->time_ns / WR_NS_PER_S);
    *at++ = '\n';
    out->length = (size_t)(at - out->data);
}

static void put_event(struct wr_encoder *encoder, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        if (is_written(&encoder->batch->samples[i]))
            put_sample(encoder, &encoder->batch->samples[i]);
        else
            wr_encoder_omit(encoder, i);
    }
}

/* Processes whose intervals end at the same second would replace each other's values. */
static uint32_t choose_wanted(const void *given)
{
    const struct graphite_options *options = given;
    return (options->tags ? WR_WANTS_INSTANCE : 0) | (options->temporality == DELTA ? WR_WANTS_DELTAS : 0) |
           (options->names == NAMES_STATSD ? WR_WANTS_STATSD : 0);
}

const struct wr_format wr_format_graphite = {
    .name = "graphite",
    .summary = "Graphite's plain text, a line for each sample: group.name value seconds",
    .content_type = "text/plain; charset=utf-8",
    .shape = WEIR_FORMAT_LINES,
    .options = {option_rows, sizeof(weir_option), sizeof(struct graphite_options)},
    .wanted = choose_wanted,
    .put_prefix = put_prefix,
    .put_event = put_event,
};
