#include "source/source_options.h"

#include <stddef.h>

#include "os/clock.h"
#include "text/common.h"

#define ROW(name, type, default_text, allowed, help, field)                                                    \
    WEIR_OPTION_ROW(name, type, 0, default_text, allowed, help, struct wr_source_options, field)

static const weir_option rows[] = {
    /* of types that read text: these come first, so that the others are a table of their own */
    ROW("parse", ENUM, "auto", "auto|text|json|bai|influx|statsd|graphite|prometheus|openmetrics|csv|patterns",
        "the format of what is read; auto: text or json, line by line", parse),
    ROW("patterns", STRING, NULL, NULL,
        "\"parse\" patterns: regular expressions whose matches are values: a file, the preset nginx, or an "
        "array of patterns",
        patterns),
    ROW("line_bytes", SIZE, "1MiB", "64B..64MiB", "the longest line; longer ones are refused", line_bytes),
    ROW("split", ENUM, "none", "none|first|last",
        "\"parse\" statsd and graphite: which part of a dotted path is the group: a of a.b.c (first), a.b "
        "(last)",
        split),
    ROW("time_unit", ENUM, "ns", "ns|us|ms|s", "\"parse\" influx: the unit of its times", time_unit),
    ROW("repeat_limit", INT, "1000", "1..100000",
        "\"parse\" statsd: a timer with a sample rate of 1/N is added N times, but at most so often; 1: once",
        repeat_limit),
    ROW("set_interval", DURATION, "0s", "0s..1d",
        "\"parse\" statsd: the distinct members of a set are counted for so long; 0s: each member is a value "
        "of 1 with the member as its metadata",
        set_interval_ns),
    ROW("set_members", INT, "1000000", "1..100000000",
        "how many distinct members all sets may have in an interval; further ones are refused", set_members),

    ROW("group", STRING, NULL, NULL, "the group of values that come without one; without it, the source's name",
        group),
    ROW("group_prefix", STRING, NULL, NULL, "precedes all groups, as \"PREFIX.GROUP\"", group_prefix),
    ROW("labels", MAP, NULL, NULL, "labels of all values; they replace those of the same keys", labels),
    ROW("label_variables", STRING, NULL, NULL,
        "a prefix of environment variables that are labels, too: with CUSTOM_LABEL_ the variable "
        "CUSTOM_LABEL_ZONE is the label zone",
        label_variables),
    ROW("series_limit", INT, "10000", "1..10000000",
        "how many series the source may add values to; values of further ones are refused", series_limit),
    ROW("expiry", DURATION, "0s", "0s..365d",
        "a series without values for so long ends, and no longer counts for the limits; 0s: never", expiry_ns),
    ROW("retry_min", DURATION, "500ms", "1ms..1h",
        "the pause after a first failure; it doubles with each further one", retry_min_ns),
    ROW("retry_max", DURATION, "30s", "1ms..1d", "the longest pause between two tries", retry_max_ns),
    {0},
};

enum { PARSE_ROWS = 8 };

struct wr_options_table wr_source_options_table(bool parses)
{
    return WR_OPTIONS_TABLE(parses ? rows : rows + PARSE_ROWS, struct wr_source_options);
}

const weir_option *wr_source_options_find_clash(const struct wr_options_table *own, bool parses)
{
    const struct wr_options_table commons = wr_source_options_table(parses);
    const weir_option *row = wr_options_find_key(own, "type"), *common;
    if (!row)
        row = wr_options_find_key(own, "plugin");
    for (size_t i = 0; !row && (common = wr_options_row(&commons, i)); i++)
        row = wr_options_find_key(own, common->name);
    return row;
}

bool wr_source_options_has_patterns(const struct wr_source_options *options)
{
    return !wr_parser_type_at((size_t)options->parse);
}

struct wr_parser_options wr_source_options_parser(const struct wr_source_options *options)
{
    static const int64_t units_ns[] = {1, 1000, WR_NS_PER_MS, WR_NS_PER_S};
    return (struct wr_parser_options){
        .line_bytes = (size_t)options->line_bytes,
        .time_unit_ns = units_ns[options->time_unit],
        .split = (enum wr_parser_split)options->split,
    };
}
