/* schema_sources: source types, with their options, as JSON Schema. */
#ifndef WEIR_TOOLS_SCHEMA_SOURCES_H
#define WEIR_TOOLS_SCHEMA_SOURCES_H

struct json_object;
struct schema_types;

/* Adds the definition "source", and those to which it refers. */
void schema_add_source_definitions(struct json_object *definitions, const struct schema_types *types);

#endif
