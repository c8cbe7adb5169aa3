#include "schema_handlers.h"

#include <stdio.h>

#include "config/common_options.h"
#include "format/format.h"
#include "handler/instance.h"
#include "property.h"
#include "table.h"

enum { KEY_ROOM = 100 };

#define ALL_SHAPES (WEIR_FORMAT_LINES | WEIR_FORMAT_DOCUMENTS | WEIR_FORMAT_RECORDS)

/* ---- Small pieces ---------------------------------------------------------------------------- */

/* `if`: "type" is this name; `then`: what the definition says. */
static void put_case(struct json_out *out, const char *type, const char *kind)
{
    char definition[KEY_ROOM];
    snprintf(definition, sizeof definition, "%s_%s", kind, type);
    json_out_open(out, NULL, '{');
    json_out_open(out, "if", '{');
    json_out_open(out, "required", '[');
    json_out_text(out, NULL, "type");
    json_out_close(out, ']');
    json_out_open(out, "properties", '{');
    property_put_constant(out, "type", type);
    json_out_close(out, '}');
    json_out_close(out, '}');
    property_put_reference(out, "then", definition);
    json_out_close(out, '}');
}

/* One of the names that `put` writes, or a variable that stands for one. */
static void begin_names(struct json_out *out)
{
    json_out_open(out, "anyOf", '[');
    json_out_open(out, NULL, '{');
}

static void end_names(struct json_out *out, const char *or_else)
{
    json_out_close(out, '}');
    property_put_reference(out, NULL, or_else);
    json_out_close(out, ']');
}

/* ---- Formats --------------------------------------------------------------------------------- */

/* Whether nothing has to be said of a format but its name. */
static bool needs_no_options(const struct wr_format *format)
{
    struct wr_region keep = {0};
    const char *no_entries[] = {NULL};
    const struct wr_environment environment = {.entries = no_entries, .folder = "/"};
    struct wr_options_fill fill = {format->options, wr_region_alloc(&keep, format->options.struct_bytes + 1),
                                   &environment, &keep, NULL};
    bool good = fill.target && wr_options_set_defaults(&fill, NULL);
    const weir_option *row;
    for (size_t i = 0; (row = wr_options_row(&format->options, i)); i++)
        good &= !(row->flags & WEIR_OPTION_REQUIRED);
    good = good && !(format->find_fault && format->find_fault(fill.target));
    wr_region_fini(&keep);
    return good;
}

static void put_format_names(struct json_out *out, uint32_t takes, bool by_name_alone)
{
    const struct wr_format *format;
    begin_names(out);
    json_out_open(out, "enum", '[');
    for (size_t i = 0; (format = wr_format_at(i)); i++)
        if (takes & format->shape && (!by_name_alone || needs_no_options(format)))
            json_out_text(out, NULL, format->name);
    json_out_close(out, ']');
    json_out_open(out, "enumDescriptions", '[');
    for (size_t i = 0; (format = wr_format_at(i)); i++)
        if (takes & format->shape && (!by_name_alone || needs_no_options(format)))
            json_out_text(out, NULL, format->summary);
    json_out_close(out, ']');
    end_names(out, "expansion");
}

static void put_format_object(struct json_out *out, uint32_t takes)
{
    const struct wr_format *format;
    property_open_object(out, NULL, NULL, false);
    json_out_open(out, "required", '[');
    json_out_text(out, NULL, "type");
    json_out_close(out, ']');
    json_out_open(out, "properties", '{');
    json_out_open(out, "type", '{');
    json_out_text(out, "description", "the format's name");
    put_format_names(out, takes, false);
    json_out_close(out, '}');
    json_out_close(out, '}');
    json_out_open(out, "allOf", '[');
    for (size_t i = 0; (format = wr_format_at(i)); i++)
        if (takes & format->shape)
            put_case(out, format->name, "format");
    json_out_close(out, ']');
    json_out_close(out, '}');
}

static void put_format_member(struct json_out *out, uint32_t takes, const char *default_value)
{
    json_out_open(out, "format", '{');
    json_out_text(out, "description", TABLE_FORMAT_HELP);
    json_out_text(out, "default", default_value);
    json_out_open(out, "anyOf", '[');
    json_out_open(out, NULL, '{');
    put_format_names(out, takes, true);
    json_out_close(out, '}');
    put_format_object(out, takes);
    json_out_close(out, ']');
    json_out_close(out, '}');
}

static void put_format(struct json_out *out, const struct wr_format *format)
{
    char key[KEY_ROOM];
    snprintf(key, sizeof key, "format_%s", format->name);
    property_open_object(out, key, format->summary, true);
    if (!needs_no_options(format))
        json_out_word(out, "minProperties", "2");
    json_out_open(out, "required", '[');
    property_put_required(out, &format->options);
    json_out_close(out, ']');
    json_out_open(out, "properties", '{');
    property_put_constant(out, "type", format->name);
    property_put_all(out, &format->options, NULL);
    json_out_close(out, '}');
    json_out_close(out, '}');
}

/* ---- Handlers -------------------------------------------------------------------------------- */

static void put_commons(struct json_out *out, const struct wr_options_table *table, uint32_t takes,
                        const char *format, const weir_default *defaults)
{
    if (takes)
        put_format_member(out, takes, format);
    property_put_all(out, table, defaults);
}

static void put_type(struct json_out *out, const struct wr_type *type)
{
    char key[KEY_ROOM];
    snprintf(key, sizeof key, "handler_%s", type->is.name);
    property_open_object(out, key, type->is.summary, true);
    json_out_open(out, "required", '[');
    property_put_required(out, &type->options);
    json_out_close(out, ']');
    json_out_open(out, "properties", '{');
    property_put_constant(out, "type", type->is.name);
    property_put_all(out, &type->options, NULL);
    put_commons(out, &type->common_options, type->is.formats, wr_instance_default_format(type),
                type->is.defaults);
    json_out_close(out, '}');
    json_out_close(out, '}');
}

/* What is known of a handler whose type is not: that of "plugin", or of a variable. */
static void put_unknown_type(struct json_out *out)
{
    const struct wr_options_table common_options = wr_common_options_table();
    property_open_object(out, "handler_of_unknown_type", NULL, false);
    json_out_open(out, "properties", '{');
    put_commons(out, &common_options, ALL_SHAPES, "json", NULL);
    json_out_close(out, '}');
    json_out_close(out, '}');
}

static bool has_required(const struct wr_type *type)
{
    const weir_option *row;
    for (size_t i = 0; (row = wr_options_row(&type->options, i)); i++)
        if (row->flags & WEIR_OPTION_REQUIRED)
            return true;
    return false;
}

void schema_handlers_put_names(struct json_out *out, const struct schema_types *types, bool by_name_alone,
                               const char *more, const char *more_is)
{
    json_out_open(out, "enum", '[');
    if (more)
        json_out_text(out, NULL, more);
    for (size_t i = 0; i < types->count; i++)
        if (!by_name_alone || !has_required(types->items[i]))
            json_out_text(out, NULL, types->items[i]->is.name);
    json_out_close(out, ']');
    json_out_open(out, "enumDescriptions", '[');
    if (more)
        json_out_text(out, NULL, more_is);
    for (size_t i = 0; i < types->count; i++)
        if (!by_name_alone || !has_required(types->items[i]))
            json_out_text(out, NULL, types->items[i]->is.summary);
    json_out_close(out, ']');
}

/* An installed type, and its options; or a variable. */
static void put_installed(struct json_out *out, const struct schema_types *types)
{
    json_out_open(out, "else", '{');
    json_out_open(out, "properties", '{');
    json_out_open(out, "type", '{');
    begin_names(out);
    schema_handlers_put_names(out, types, false, NULL, NULL);
    end_names(out, "expansion");
    json_out_close(out, '}');
    json_out_close(out, '}');
    json_out_open(out, "allOf", '[');
    for (size_t i = 0; i < types->count; i++)
        put_case(out, types->items[i]->is.name, "handler");
    json_out_open(out, NULL, '{');
    json_out_open(out, "if", '{');
    json_out_open(out, "properties", '{');
    property_put_reference(out, "type", "expansion");
    json_out_close(out, '}');
    json_out_close(out, '}');
    property_put_reference(out, "then", "handler_of_unknown_type");
    json_out_close(out, '}');
    json_out_close(out, ']');
    json_out_close(out, '}');
}

static void put_handler_heads(struct json_out *out)
{
    json_out_open(out, "properties", '{');
    json_out_open(out, "type", '{');
    json_out_text(out, "description", "the handler type");
    json_out_open(out, "allOf", '[');
    property_put_reference(out, NULL, "text");
    json_out_close(out, ']');
    json_out_text(out, "pattern", "^(?:[a-z][a-z0-9_]*$|[\\s\\S]*\\$)");
    json_out_close(out, '}');
    json_out_open(out, "plugin", '{');
    json_out_text(out, "description", "the absolute path of a shared object to take the type from");
    json_out_open(out, "allOf", '[');
    property_put_reference(out, NULL, "text");
    json_out_close(out, ']');
    json_out_text(out, "pattern", "^(?:/|\\$)");
    json_out_close(out, '}');
    json_out_close(out, '}');
}

static void put_handler(struct json_out *out, const struct schema_types *types)
{
    property_open_object(out, "handler", "a destination: its type, and that type's options", false);
    json_out_open(out, "required", '[');
    json_out_text(out, NULL, "type");
    json_out_close(out, ']');
    put_handler_heads(out);
    json_out_open(out, "if", '{');
    json_out_open(out, "required", '[');
    json_out_text(out, NULL, "plugin");
    json_out_close(out, ']');
    json_out_close(out, '}');
    property_put_reference(out, "then", "handler_of_unknown_type");
    put_installed(out, types);
    json_out_close(out, '}');
}

static void put_defaults(struct json_out *out)
{
    const struct wr_options_table common_options = wr_common_options_table();
    property_open_object(out, "defaults", "other defaults for the options that every handler has", true);
    json_out_open(out, "properties", '{');
    put_commons(out, &common_options, ALL_SHAPES, "json", NULL);
    json_out_close(out, '}');
    json_out_close(out, '}');
}

void schema_handlers_put_definitions(struct json_out *out, const struct schema_types *types)
{
    const struct wr_format *format;
    put_defaults(out);
    put_handler(out, types);
    put_unknown_type(out);
    for (size_t i = 0; i < types->count; i++)
        put_type(out, types->items[i]);
    for (size_t i = 0; (format = wr_format_at(i)); i++)
        put_format(out, format);
}
