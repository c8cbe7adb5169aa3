#include "schema_sources.h"

#include <json-c/json.h>

#include "schema_handlers.h"
#include "schema_options.h"
#include "handler/plugin.h"
#include "source/source_options.h"

/* Patterns may also be in the configuration itself. */
static void add_patterns(struct json_object *properties)
{
    struct json_object *text = json_object_get(json_object_object_get(properties, "patterns"));
    struct json_object *choices = json_add_array(json_add_object(properties, "patterns"), "anyOf");
    json_object_array_add(choices, text);
    json_add_text(json_add_object(choices, NULL), "type", "object");
    json_add_text(json_add_object(choices, NULL), "type", "array");
}

static void add_common_options(struct json_object *properties, const struct wr_type *type)
{
    bool parses = !type || type->is.flags & WEIR_SOURCE_TYPE_PARSES;
    const struct wr_options_table table = wr_source_options_table(parses);
    schema_add_options(properties, &table, type ? type->is.defaults : NULL);
    if (parses)
        add_patterns(properties);
}

void schema_add_source_definitions(struct json_object *definitions, const struct schema_types *types)
{
    static const struct schema_kind kind = {
        "source", "what values are read from: its type, and that type's options", add_common_options};
    schema_add_kind(definitions, &kind, types);
}
