/* schema_handlers: types with their options as JSON Schema; handler types and formats. */
#ifndef WEIR_TOOLS_SCHEMA_HANDLERS_H
#define WEIR_TOOLS_SCHEMA_HANDLERS_H

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

/* What handlers and sources differ in. */
struct schema_kind {
    const char *key, *description; /* of the definition; the other keys begin with it, too */
    /* type: whose common options they are; NULL: any */
    void (*add_common_options)(struct json_object *properties, const struct wr_type *type);
};

/* Adds the definition of a kind, and those of its types. */
void schema_add_kind(struct json_object *definitions, const struct schema_kind *kind,
                     const struct schema_types *types);

/* Adds the definitions "handler" and "defaults", and those to which they refer. */
void schema_add_handler_definitions(struct json_object *definitions, const struct schema_types *types);

/* Adds what a route may name to an object, "inherit" and types without required options: their names as "enum",
 * their summaries as "enumDescriptions". */
void schema_add_route_names(struct json_object *parent, const struct schema_types *types);

#endif
