/* property: options as a JSON Schema describes them. */
#ifndef WEIR_TOOLS_PROPERTY_H
#define WEIR_TOOLS_PROPERTY_H

#include <stdbool.h>

#include <weir/handler.h>

#include "config/options.h"
#include "json_out.h"

/* What values of options look like, as members of the schema's "definitions"; the properties below refer to
 * them. */
void property_put_definitions(struct json_out *out);

/* Writes a member that refers to one of the definitions: of those above, or of the caller's own. */
void property_put_reference(struct json_out *out, const char *key, const char *definition);

/* Begins an object of the schema that describes an object; description: may be NULL; closed: it has no other
 * members than those under "properties". */
void property_open_object(struct json_out *out, const char *key, const char *description, bool closed);

/* Writes a member that is fulfilled by one text only. */
void property_put_constant(struct json_out *out, const char *key, const char *value);

/* Writes each option of a table as a member, those with dotted names as objects. defaults: defaults that count
 * instead of the table's own; may be NULL. */
void property_put_all(struct json_out *out, const struct wr_options_table *table,
                      const weir_default *defaults);

/* Writes the names of those that are required as elements. */
void property_put_required(struct json_out *out, const struct wr_options_table *table);

#endif
