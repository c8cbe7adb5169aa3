/* table: options of handler types and formats, shown to people and to programs. */
#ifndef WEIR_TOOLS_TABLE_H
#define WEIR_TOOLS_TABLE_H

#include <weir/handler.h>

#include "options.h"

struct wr_buffer;

/* Appends a table of options, each with type, default, what is allowed, and help. standards: defaults that
 * count instead of the table's own, by name; may be NULL. */
void table_put(struct wr_buffer *out, const struct wr_options_table *table, const weir_standard *standards);

/* The same as a JSON array of objects. */
void table_put_json(struct wr_buffer *out, const struct wr_options_table *table,
                    const weir_standard *standards);

/* Appends `"key":"value"`, or `"key":null`. */
void table_put_json_member(struct wr_buffer *out, const char *key, const char *value);

#endif
