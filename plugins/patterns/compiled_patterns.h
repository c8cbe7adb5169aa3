/* compiled_patterns: compiled expressions, and what they make of a match. */
#ifndef WR_COMPILED_PATTERNS_H
#define WR_COMPILED_PATTERNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <weir/weir.h>

#include "parse/time_form.h"
#include "text/region.h"

#include "patterns.h"

struct wr_error;

/* A group whose text becomes a label. */
struct wr_pattern_label {
    uint32_t group;
    const char *key;
};

/* In the text of a value, `from` becomes `to`. */
struct wr_pattern_replacement {
    const char *from, *to;
    size_t from_length, to_length;
};

struct wr_pattern {
    const char *name;
    const char *unit; /* NULL: not given */
    int instrument;   /* enum weir_instrument */
    bool is_python;   /* benchmarkai's: the expression is one of Python's, and a line's end is part of it */
    bool has_constant;
    weir_number constant; /* the value where no group is */
    struct wr_time_form time;
    struct wr_pattern_replacement *replacements;
    size_t replacement_count;

    /* set by wr_pattern_compile */
    uint32_t value_group; /* 0: the whole match */
    bool has_value_group; /* one is named "value" */
    uint32_t time_group;  /* 0: none */
    struct wr_pattern_label *labels;
    size_t label_count;
    pcre2_code *valid;   /* for lines that are UTF-8, which is not checked again for each match */
    pcre2_code *invalid; /* for lines with other bytes, which no match contains */
};

struct wr_patterns {
    struct wr_pattern *items;
    uint32_t count, room;
    uint32_t most_groups; /* of an item */
    struct wr_region keep;
};

/* Compiles an expression of `length` bytes. Returns false and sets the error to what follows the place of the
 * expression in a message. */
bool wr_pattern_compile(struct wr_patterns *patterns, struct wr_pattern *pattern, const char *text,
                        size_t length, struct wr_error *error);

#endif
