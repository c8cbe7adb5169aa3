#include "schema_sources.h"

#include <json-c/json.h>
#include <stdio.h>

#include "schema_handlers.h"
#include "schema_options.h"
#include "handler/plugin.h"
#include "source/source_options.h"

enum { KEY_ROOM = 100 };

/* Patterns may also be in the configuration itself. */
static void add_patterns(struct json_object *properties)
{
    struct json_object *text = json_object_get(json_object_object_get(properties, "patterns"));
    struct json_object *choices = json_add_array(json_add_object(properties, "patterns"), "anyOf");
    json_object_array_add(choices, text);
    json_add_text(json_add_object(choices, NULL), "type", "object");
    json_add_text(json_add_object(choices, NULL), "type", "array");
}

static void add_common_options(struct json_object *properties, bool parses, const weir_default *defaults)
{
    const struct wr_options_table table = wr_source_options_table(parses);
    schema_add_options(properties, &table, defaults);
    if (parses)
        add_patterns(properties);
}

static void add_type_definition(struct json_object *definitions, const struct wr_type *type)
{
    char key[KEY_ROOM];
    snprintf(key, sizeof key, "source_%s", type->is.name);
    struct json_object *object = schema_add_object(definitions, key, type->is.summary, true);
    schema_add_required_options(object, &type->options);
    struct json_object *properties = json_add_object(object, "properties");
    schema_add_constant(properties, "type", type->is.name);
    schema_add_options(properties, &type->options, NULL);
    add_common_options(properties, type->is.flags & WEIR_SOURCE_TYPE_PARSES, type->is.defaults);
}

/* {"if": "type" is that of the type, "then": the type's definition} */
static void add_case(struct json_object *array, const struct wr_type *type)
{
    char definition[KEY_ROOM];
    snprintf(definition, sizeof definition, "source_%s", type->is.name);
    struct json_object *object = json_add_object(array, NULL), *condition = json_add_object(object, "if");
    schema_add_required(condition, "type");
    schema_add_constant(json_add_object(condition, "properties"), "type", type->is.name);
    schema_add_reference(object, "then", definition);
}

/* The name of an installed type, which decides about the options; or a variable. */
static void add_installed_types(struct json_object *source, const struct schema_types *types)
{
    struct json_object *object = json_add_object(source, "else");
    struct json_object *type_property = json_add_object(json_add_object(object, "properties"), "type");
    struct json_object *choices = json_add_array(type_property, "anyOf");
    struct json_object *known = json_add_object(choices, NULL);
    struct json_object *names = json_add_array(known, "enum");
    struct json_object *summaries = json_add_array(known, "enumDescriptions");
    schema_add_reference(choices, NULL, "expansion");
    struct json_object *cases = json_add_array(object, "allOf");
    for (size_t i = 0; i < types->count; i++) {
        const struct wr_type *type = types->items[i];
        json_add_text(names, NULL, type->is.name);
        json_add_text(summaries, NULL, type->is.summary);
        add_case(cases, type);
    }
    struct json_object *variable = json_add_object(cases, NULL);
    struct json_object *condition = json_add_object(variable, "if");
    schema_add_reference(json_add_object(condition, "properties"), "type", "expansion");
    schema_add_reference(variable, "then", "source_of_unknown_type");
}

static void add_text_property(struct json_object *properties, const char *key, const char *description,
                              const char *pattern)
{
    struct json_object *property = json_add_object(properties, key);
    json_add_text(property, "description", description);
    schema_add_all_of(property, "text");
    json_add_text(property, "pattern", pattern);
}

static void add_source_definition(struct json_object *definitions, const struct schema_types *types)
{
    struct json_object *object = schema_add_object(
        definitions, "source", "what values are read from: its type, and that type's options", false);
    schema_add_required(object, "type");
    struct json_object *properties = json_add_object(object, "properties");
    add_text_property(properties, "type", "the source type", "^(?:[a-z][a-z0-9_]*$|[\\s\\S]*\\$)");
    add_text_property(properties, "plugin", "the absolute path of the shared object with the type",
                      "^(?:/|\\$)");
    schema_add_required(json_add_object(object, "if"), "plugin");
    schema_add_reference(object, "then", "source_of_unknown_type");
    add_installed_types(object, types);
}

void schema_add_source_definitions(struct json_object *definitions, const struct schema_types *types)
{
    add_source_definition(definitions, types);
    struct json_object *unknown = schema_add_object(definitions, "source_of_unknown_type", NULL, false);
    add_common_options(json_add_object(unknown, "properties"), true, NULL);
    for (size_t i = 0; i < types->count; i++)
        add_type_definition(definitions, types->items[i]);
}
