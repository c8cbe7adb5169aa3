/* record: adds what a parser has read to a stream. */
#ifndef WEIR_TOOLS_RECORD_H
#define WEIR_TOOLS_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/weir.h>

#include "parse/parser.h"

/* For records without their own. */
struct record_defaults {
    const char *group; /* NULL: each record has to name its group */
    const weir_label *labels;
    size_t label_count; /* at most WR_PARSER_LABELS */
    int instrument;     /* enum weir_instrument */
};

/* Declares and describes a name as the record says, once. What the configuration or an earlier record says
 * takes precedence. */
void record_declare(weir_stream *stream, const struct wr_parse_record *record, const char *name);

/* The group of a record, or NULL. */
const char *record_group(const struct record_defaults *defaults, const struct wr_parse_record *record);

/* The stream of the group and the labels; those of the record take precedence. Never NULL. */
weir_stream *record_stream(const struct record_defaults *defaults, const struct wr_parse_record *record);

/* How many bytes it takes in a queue. */
size_t record_bytes(const struct wr_parse_record *record);

/* Adds the record, after declaring and describing its names as it says. Returns NULL, or why nothing was
 * added: valid until the next call of weir. */
const char *record_add(weir_stream *stream, const struct wr_parse_record *record);

/* Sets the kinds of values: integers up to 2^53 become doubles, so that the values of a name have one type.
 * Beyond that they stay integers and keep all their digits, unless a value of the same name was written with a
 * fraction or an exponent before: then they become doubles too. */
void record_settle_kinds(const char *group, weir_typed_value *values, size_t count);

#endif
