/* table: option tables of handler types, formats and settings, as text and as JSON. */
#ifndef WEIR_TOOLS_TABLE_H
#define WEIR_TOOLS_TABLE_H

#include <weir/handler.h>

#include "config/options.h"

struct json_object;
struct wr_buffer;

/* "format" is in no table because its value may be an object. */
#define TABLE_FORMAT_HELP                                                                                      \
    "how values are written, see `weir formats`: a name, or an object with \"type\" and options"

/* The default of an option. `defaults` (may be NULL) takes precedence over the table. */
const char *table_default_of(const weir_option *row, const weir_default *defaults);

/* Appends each option with type, default, what is allowed, and help. */
void table_put(struct wr_buffer *out, const struct wr_options_table *table, const weir_default *defaults);

/* Adds an object for each option to a JSON array. */
void table_add_json(struct json_object *array, const struct wr_options_table *table,
                    const weir_default *defaults);

#endif
