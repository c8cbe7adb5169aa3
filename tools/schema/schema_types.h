/* schema_types: handler types, source types and formats, with their options, as JSON Schema. */
#ifndef WEIR_TOOLS_SCHEMA_TYPES_H
#define WEIR_TOOLS_SCHEMA_TYPES_H

#include <stdbool.h>
#include <stddef.h>

struct json_object;
struct wr_type;

enum { SCHEMA_MAX_TYPES = 1000 };

/* The installed types, sorted by name. */
struct schema_types {
    const struct wr_type *items[SCHEMA_MAX_TYPES];
    size_t count;
};

/* Adds the definitions "handler" and "defaults", and those to which they refer. */
void schema_add_handler_definitions(struct json_object *definitions, const struct schema_types *types);

/* Adds the definition "source", and those to which it refers. */
void schema_add_source_definitions(struct json_object *definitions, const struct schema_types *types);

/* Adds what a route may name to an object, "inherit" and types without required options: their names as "enum",
 * their summaries as "enumDescriptions". */
void schema_add_route_names(struct json_object *parent, const struct schema_types *types);

#endif
