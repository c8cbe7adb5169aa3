/* table: options of handler types and formats, shown to people and to programs. */
#ifndef WEIR_TOOLS_TABLE_H
#define WEIR_TOOLS_TABLE_H

#include <weir/handler.h>

#include "config/options.h"

struct wr_buffer;

/* "format" is in no table, since it may be an object. */
#define TABLE_FORMAT_HELP                                                                                      \
    "how values become text: see `weir formats`; a name, or an object with \"type\" and options"

/* The default of an option: that of `defaults` (may be NULL), which counts instead of the table's own. */
const char *table_default_of(const weir_option *row, const weir_default *defaults);

/* Appends a table of options, each with type, default, what is allowed, and help. defaults: defaults that
 * count instead of the table's own, by name; may be NULL. */
void table_put(struct wr_buffer *out, const struct wr_options_table *table, const weir_default *defaults);

/* The same as a JSON array of objects. */
void table_put_json(struct wr_buffer *out, const struct wr_options_table *table,
                    const weir_default *defaults);

/* Appends `"key":"value"`, or `"key":null`. */
void table_put_json_member(struct wr_buffer *out, const char *key, const char *value);

#endif
