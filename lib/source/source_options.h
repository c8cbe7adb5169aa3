/* source_options: the options that every source has. */
#ifndef WR_SOURCE_OPTIONS_H
#define WR_SOURCE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "config/options.h"
#include "parse/parser.h"

struct wr_source_options {
    const char *group;           /* NULL: the source's name */
    const char *group_prefix;    /* NULL: none */
    weir_map labels;             /* with those of the environment */
    const char *label_variables; /* NULL: none */
    int64_t series_limit;
    int64_t expiry_ns; /* 0: never */
    int64_t retry_min_ns, retry_max_ns;

    /* of types that read text */
    int64_t parse;        /* the number of a parser type; behind the last: patterns */
    const char *patterns; /* a preset or a file; NULL: none, or they are in the configuration itself */
    int64_t line_bytes;
    int64_t split; /* enum wr_parser_split */
    int64_t time_unit;
    int64_t repeat_limit;
    int64_t set_interval_ns; /* 0: each member is a value */
    int64_t set_members;
};

/* parses: with the options of types that read text. */
struct wr_options_table wr_source_options_table(bool parses);

/* One of a type's options whose key in a configuration is one of that table, or "type" or "plugin". NULL:
 * none. */
const weir_option *wr_source_options_find_clash(const struct wr_options_table *own, bool parses);

/* Whether `parse` is patterns. */
bool wr_source_options_has_patterns(const struct wr_source_options *options);

/* What they mean to a parser. */
struct wr_parser_options wr_source_options_parser(const struct wr_source_options *options);

#endif
