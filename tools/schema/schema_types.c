#include "schema_types.h"

#include <stdio.h>

#include <json-c/json.h>

#include "common/table.h"
#include "config/common_options.h"
#include "format/format.h"
#include "handler/instance.h"
#include "handler/plugin.h"
#include "schema_options.h"
#include "source/source_options.h"

enum { KEY_ROOM = 100 };

#define ALL_SHAPES (WEIR_FORMAT_LINES | WEIR_FORMAT_DOCUMENTS | WEIR_FORMAT_RECORDS)

/* What handlers and sources differ in. */
struct kind {
    const char *key, *description; /* of the definition; the other keys begin with it, too */
    /* type: whose common options they are; NULL: any */
    void (*add_common_options)(struct json_object *properties, const struct wr_type *type);
};

/* {"if": "type" is `type`, "then": the definition KIND_TYPE} */
static void add_case(struct json_object *array, const char *type, const char *kind)
{
    char definition[KEY_ROOM];
    snprintf(definition, sizeof definition, "%s_%s", kind, type);
    struct json_object *object = json_add_object(array, NULL), *condition = json_add_object(object, "if");
    schema_add_required(condition, "type");
    schema_add_constant(json_add_object(condition, "properties"), "type", type);
    schema_add_reference(object, "then", definition);
}

/* ---- Formats --------------------------------------------------------------------------------- */

/* Whether the format works with its defaults, so that its name alone selects it. */
static bool works_with_defaults(const struct wr_format *format)
{
    struct wr_region keep = {0};
    struct wr_options_fill fill = {.table = format->options,
                                   .target = wr_region_alloc(&keep, format->options.struct_bytes + 1),
                                   .environment = &wr_environment_empty,
                                   .keep = &keep};
    bool works = fill.target && wr_options_set_defaults(&fill, NULL);
    const weir_option *row;
    for (size_t i = 0; (row = wr_options_row(&format->options, i)); i++)
        works &= !(row->flags & WEIR_OPTION_REQUIRED);
    works = works && !(format->find_fault && format->find_fault(fill.target));
    wr_region_fini(&keep);
    return works;
}

/* {"enum": the names of the formats, ...}, or a variable. */
static void add_format_names(struct json_object *parent, uint32_t takes, bool by_name_alone)
{
    const struct wr_format *format;
    struct json_object *choices = json_add_array(parent, "anyOf");
    struct json_object *names_object = json_add_object(choices, NULL);
    struct json_object *names = json_add_array(names_object, "enum");
    struct json_object *summaries = json_add_array(names_object, "enumDescriptions");
    for (size_t i = 0; (format = wr_format_at(i)); i++) {
        if (!(takes & format->shape) || (by_name_alone && !works_with_defaults(format)))
            continue;
        json_add_text(names, NULL, format->name);
        json_add_text(summaries, NULL, format->summary);
    }
    schema_add_reference(choices, NULL, "expansion");
}

static void add_format_object(struct json_object *array, uint32_t takes)
{
    const struct wr_format *format;
    struct json_object *object = schema_add_object(array, NULL, NULL, false);
    schema_add_required(object, "type");
    struct json_object *type = json_add_object(json_add_object(object, "properties"), "type");
    json_add_text(type, "description", "the format's name");
    add_format_names(type, takes, false);
    struct json_object *cases = json_add_array(object, "allOf");
    for (size_t i = 0; (format = wr_format_at(i)); i++)
        if (takes & format->shape)
            add_case(cases, format->name, "format");
}

static void add_format_property(struct json_object *properties, uint32_t takes, const char *default_format)
{
    struct json_object *object = json_add_object(properties, "format");
    json_add_text(object, "description", TABLE_FORMAT_HELP);
    json_add_text(object, "default", default_format);
    struct json_object *choices = json_add_array(object, "anyOf");
    add_format_names(json_add_object(choices, NULL), takes, true);
    add_format_object(choices, takes);
}

static void add_format_definition(struct json_object *definitions, const struct wr_format *format)
{
    char key[KEY_ROOM];
    snprintf(key, sizeof key, "format_%s", format->name);
    struct json_object *object = schema_add_object(definitions, key, format->summary, true);
    if (!works_with_defaults(format))
        json_add_count(object, "minProperties", 2);
    schema_add_required_options(object, &format->options);
    struct json_object *properties = json_add_object(object, "properties");
    schema_add_constant(properties, "type", format->name);
    schema_add_options(properties, &format->options, NULL);
}

/* ---- Types ----------------------------------------------------------------------------------- */

static void add_type_definition(struct json_object *definitions, const struct kind *kind,
                                const struct wr_type *type)
{
    char key[KEY_ROOM];
    snprintf(key, sizeof key, "%s_%s", kind->key, type->is.name);
    struct json_object *object = schema_add_object(definitions, key, type->is.summary, true);
    schema_add_required_options(object, &type->options);
    struct json_object *properties = json_add_object(object, "properties");
    schema_add_constant(properties, "type", type->is.name);
    schema_add_options(properties, &type->options, NULL);
    kind->add_common_options(properties, type);
}

static void add_type_names(struct json_object *parent, const struct schema_types *types)
{
    struct json_object *names = json_add_array(parent, "enum");
    struct json_object *summaries = json_add_array(parent, "enumDescriptions");
    for (size_t i = 0; i < types->count; i++) {
        json_add_text(names, NULL, types->items[i]->is.name);
        json_add_text(summaries, NULL, types->items[i]->is.summary);
    }
}

/* The name of an installed type, which decides about the options; or a variable. */
static void add_installed_types(struct json_object *parent, const struct kind *kind,
                                const struct schema_types *types, const char *unknown)
{
    struct json_object *object = json_add_object(parent, "else");
    struct json_object *type = json_add_object(json_add_object(object, "properties"), "type");
    struct json_object *choices = json_add_array(type, "anyOf");
    add_type_names(json_add_object(choices, NULL), types);
    schema_add_reference(choices, NULL, "expansion");
    struct json_object *cases = json_add_array(object, "allOf");
    for (size_t i = 0; i < types->count; i++)
        add_case(cases, types->items[i]->is.name, kind->key);
    struct json_object *variable = json_add_object(cases, NULL);
    struct json_object *condition = json_add_object(variable, "if");
    schema_add_reference(json_add_object(condition, "properties"), "type", "expansion");
    schema_add_reference(variable, "then", unknown);
}

static void add_text_property(struct json_object *properties, const char *key, const char *description,
                              const char *pattern)
{
    struct json_object *property = json_add_object(properties, key);
    json_add_text(property, "description", description);
    schema_add_all_of(property, "text");
    json_add_text(property, "pattern", pattern);
}

/* The definition of a kind, and those of its types. */
static void add_kind(struct json_object *definitions, const struct kind *kind, const struct schema_types *types)
{
    char unknown[KEY_ROOM], description[KEY_ROOM]; /* with "plugin", or whose type is a variable */
    snprintf(unknown, sizeof unknown, "%s_of_unknown_type", kind->key);
    snprintf(description, sizeof description, "the %s type", kind->key);
    struct json_object *object = schema_add_object(definitions, kind->key, kind->description, false);
    schema_add_required(object, "type");
    struct json_object *properties = json_add_object(object, "properties");
    add_text_property(properties, "type", description, "^(?:[a-z][a-z0-9_]*$|[\\s\\S]*\\$)");
    add_text_property(properties, "plugin", "the absolute path of the shared object with the type",
                      "^(?:/|\\$)");
    schema_add_required(json_add_object(object, "if"), "plugin");
    schema_add_reference(object, "then", unknown);
    add_installed_types(object, kind, types, unknown);
    object = schema_add_object(definitions, unknown, NULL, false);
    kind->add_common_options(json_add_object(object, "properties"), NULL);
    for (size_t i = 0; i < types->count; i++)
        add_type_definition(definitions, kind, types->items[i]);
}

/* ---- Handlers -------------------------------------------------------------------------------- */

static void add_handler_options(struct json_object *properties, const struct wr_type *type)
{
    const struct wr_options_table table = type ? type->common_options : wr_common_options_table();
    uint32_t formats = type ? type->is.formats : ALL_SHAPES;
    if (formats)
        add_format_property(properties, formats, type ? wr_instance_default_format(type) : "json");
    schema_add_options(properties, &table, type ? type->is.defaults : NULL);
}

static bool has_required(const struct wr_type *type)
{
    const weir_option *row;
    for (size_t i = 0; (row = wr_options_row(&type->options, i)); i++)
        if (row->flags & WEIR_OPTION_REQUIRED)
            return true;
    return false;
}

void schema_add_route_names(struct json_object *parent, const struct schema_types *types)
{
    struct json_object *names = json_add_array(parent, "enum");
    struct json_object *summaries = json_add_array(parent, "enumDescriptions");
    json_add_text(names, NULL, "inherit");
    json_add_text(summaries, NULL, "the route that the group would have without its own");
    for (size_t i = 0; i < types->count; i++) {
        if (has_required(types->items[i]))
            continue;
        json_add_text(names, NULL, types->items[i]->is.name);
        json_add_text(summaries, NULL, types->items[i]->is.summary);
    }
}

static void add_defaults_definition(struct json_object *definitions)
{
    struct json_object *object =
        schema_add_object(definitions, "defaults", "defaults of the options that every handler has", true);
    add_handler_options(json_add_object(object, "properties"), NULL);
}

void schema_add_handler_definitions(struct json_object *definitions, const struct schema_types *types)
{
    static const struct kind kind = {"handler", "a destination: its type, and that type's options",
                                     add_handler_options};
    const struct wr_format *format;
    add_defaults_definition(definitions);
    add_kind(definitions, &kind, types);
    for (size_t i = 0; (format = wr_format_at(i)); i++)
        add_format_definition(definitions, format);
}

/* ---- Sources --------------------------------------------------------------------------------- */

/* Patterns may also be in the configuration itself. */
static void add_patterns(struct json_object *properties)
{
    struct json_object *text = json_object_get(json_object_object_get(properties, "patterns"));
    struct json_object *choices = json_add_array(json_add_object(properties, "patterns"), "anyOf");
    json_object_array_add(choices, text);
    json_add_text(json_add_object(choices, NULL), "type", "object");
    json_add_text(json_add_object(choices, NULL), "type", "array");
}

static void add_source_options(struct json_object *properties, const struct wr_type *type)
{
    bool parses = !type || type->is.flags & WEIR_SOURCE_TYPE_PARSES;
    const struct wr_options_table table = wr_source_options_table(parses);
    schema_add_options(properties, &table, type ? type->is.defaults : NULL);
    if (parses)
        add_patterns(properties);
}

void schema_add_source_definitions(struct json_object *definitions, const struct schema_types *types)
{
    static const struct kind kind = {"source", "what values are read from: its type, and that type's options",
                                     add_source_options};
    add_kind(definitions, &kind, types);
}
