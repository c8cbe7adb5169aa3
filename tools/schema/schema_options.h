/* schema_options: option tables as JSON Schema. Functions that take a key add a member to an object; with key
 * NULL they add an element to an array. */
#ifndef WEIR_TOOLS_SCHEMA_OPTIONS_H
#define WEIR_TOOLS_SCHEMA_OPTIONS_H

#include <stdbool.h>

#include <weir/handler.h>

#include "common/json.h"
#include "config/options.h"

/* Adds the definitions of values ("text", "duration" ...) to which the functions below refer. */
void schema_add_value_definitions(struct json_object *definitions);

/* {"$ref": "#/definitions/DEFINITION"} */
void schema_add_reference(struct json_object *parent, const char *key, const char *definition);

/* {"const": VALUE} */
void schema_add_constant(struct json_object *parent, const char *key, const char *value);

/* {"allOf": [{"$ref": ...}]}: draft 7 ignores what stands beside a $ref. */
void schema_add_all_of(struct json_object *parent, const char *definition);

/* An array "required" with one name. */
void schema_add_required(struct json_object *parent, const char *name);

/* An object that describes an object. description may be NULL. closed: no members other than those under
 * "properties" are allowed. */
struct json_object *schema_add_object(struct json_object *parent, const char *key, const char *description,
                                      bool closed);

/* Adds a property for each option; options with dotted names become nested objects. `defaults` (may be NULL)
 * takes precedence over the defaults of the table. */
void schema_add_options(struct json_object *properties, const struct wr_options_table *table,
                        const weir_default *defaults);

/* An array "required" with the names of the required options. */
void schema_add_required_options(struct json_object *parent, const struct wr_options_table *table);

#endif
