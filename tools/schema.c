/* weir schema: the configuration as a JSON Schema, for editors.
 *
 * Draft 7, which VS Code and what is built on its language service understand in full; of later recovery_rings
 * they know parts. Where a schema has to choose, it has `if` and `then`: an editor then offers the options of
 * the type that is named, and a complaint is about what is wrong, not about all the types that it could have
 * been.
 */

#include <stdlib.h>
#include <string.h>

#include <weir/version.h>

#include "command.h"
#include "config/config.h"
#include "text/error.h"
#include "registry/name.h"
#include "json_out.h"
#include "handler/plugin.h"
#include "property.h"
#include "schema_handlers.h"

#define CONTROL "\\u0000-\\u001f\\u007f-\\u009f"

/* ---- Routes ---------------------------------------------------------------------------------- */

/* Names of handlers are the configuration's own, so any name may stand here; those of types are offered. */
static void put_route(struct json_out *out, const struct schema_types *types)
{
    json_out_open(out, "destination", '{');
    json_out_open(out, "anyOf", '[');
    json_out_open(out, NULL, '{');
    schema_handlers_put_names(out, types, true, "inherit",
                              "the route that the group would have without its own");
    json_out_close(out, '}');
    property_put_reference(out, NULL, "name");
    json_out_close(out, ']');
    json_out_close(out, '}');
    json_out_open(out, "route", '{');
    json_out_text(
        out, "description",
        "the name of a handler or of a handler type, \"inherit\", or an array of these; [] is nobody");
    json_out_open(out, "anyOf", '[');
    property_put_reference(out, NULL, "destination");
    json_out_open(out, NULL, '{');
    json_out_text(out, "type", "array");
    property_put_reference(out, "items", "destination");
    json_out_close(out, '}');
    json_out_close(out, ']');
    json_out_close(out, '}');
}

/* There is nothing above "*" to inherit from. */
static void put_route_of_all(struct json_out *out)
{
    json_out_open(out, "*", '{');
    json_out_text(out, "description", "the route of all groups that have no other");
    json_out_open(out, "allOf", '[');
    property_put_reference(out, NULL, "route");
    json_out_close(out, ']');
    json_out_open(out, "not", '{');
    json_out_open(out, "anyOf", '[');
    property_put_constant(out, NULL, "inherit");
    json_out_open(out, NULL, '{');
    json_out_text(out, "type", "array");
    property_put_constant(out, "contains", "inherit");
    json_out_close(out, '}');
    json_out_close(out, ']');
    json_out_close(out, '}');
    json_out_close(out, '}');
}

static void put_pattern(struct json_out *out, const char *key, const char *pattern, const char *rule)
{
    char most[16];
    snprintf(most, sizeof most, "%d", WR_NAME_LONGEST);
    json_out_open(out, key, '{');
    json_out_text(out, "type", "string");
    json_out_text(out, "pattern", pattern);
    json_out_text(out, "patternErrorMessage", rule);
    json_out_word(out, "maxLength", most);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static void put_settings(struct json_out *out)
{
    const struct wr_options_table table = WR_OPTIONS_TABLE(wr_settings_rows, struct wr_settings);
    property_open_object(out, "settings", "about weir as a whole", true);
    json_out_open(out, "properties", '{');
    property_put_all(out, &table, NULL);
    json_out_close(out, '}');
    json_out_close(out, '}');
}

static void put_handlers(struct json_out *out)
{
    property_open_object(out, "handlers", "destinations, by name", false);
    json_out_open(out, "propertyNames", '{');
    json_out_open(out, "allOf", '[');
    property_put_reference(out, NULL, "name");
    json_out_close(out, ']');
    property_put_constant(out, "not", "inherit");
    json_out_close(out, '}');
    json_out_open(out, "properties", '{');
    property_put_reference(out, "*", "defaults");
    json_out_close(out, '}');
    property_put_reference(out, "additionalProperties", "handler");
    json_out_close(out, '}');
}

static void put_groups(struct json_out *out)
{
    property_open_object(out, "groups", "which group goes to which handlers", false);
    put_pattern(out, "propertyNames", "^(?:\\*|[^.*" CONTROL "]+(?:\\.[^.*" CONTROL "]+)*)$",
                "a group is \"*\", or names with single dots between, without '*' and control characters");
    json_out_close(out, '}');
    json_out_open(out, "properties", '{');
    put_route_of_all(out);
    json_out_close(out, '}');
    property_put_reference(out, "additionalProperties", "route");
    json_out_close(out, '}');
}

static void put_definitions(struct json_out *out, const struct schema_types *types)
{
    json_out_open(out, "definitions", '{');
    property_put_definitions(out);
    put_pattern(out, "name", "^[^" CONTROL "]+$", "a name must have 1 to 255 bytes and no control characters");
    json_out_close(out, '}');
    schema_handlers_put_definitions(out, types);
    put_route(out, types);
    json_out_close(out, '}');
}

static void put_schema(struct json_out *out, const struct schema_types *types)
{
    json_out_open(out, NULL, '{');
    json_out_text(out, "$schema", "http://json-schema.org/draft-07/schema#");
    json_out_text(out, "$comment", "made by `weir schema`, weir " WEIR_VERSION);
    json_out_text(out, "title", "weir's configuration: where the values of metric streams go");
    json_out_text(out, "type", "object");
    json_out_word(out, "allowComments", "true"); /* for VS Code */
    json_out_word(out, "additionalProperties", "false");
    json_out_open(out, "properties", '{');
    json_out_open(out, "$schema", '{');
    json_out_text(out, "description", "for editors; weir does not look at it");
    json_out_text(out, "type", "string");
    json_out_close(out, '}');
    put_settings(out);
    put_handlers(out);
    put_groups(out);
    json_out_close(out, '}');
    put_definitions(out, types);
    json_out_close(out, '}');
}

/* ---- The command ----------------------------------------------------------------------------- */

static void complain(void *ctx, const struct wr_error *error)
{
    *(int *)ctx = command_fail("%s", error->text);
}

static int compare_names(const void *a, const void *b)
{
    const struct wr_type *const *left = a, *const *right = b;
    return strcmp((*left)->is.name, (*right)->is.name);
}

/* Of two that have the same name, the one that a configuration would get. */
static void collect(struct schema_types *types, struct wr_plugins *plugins, int *result)
{
    struct wr_error error;
    wr_plugins_load_all(plugins, complain, result);
    for (struct wr_type *type = wr_plugins_next(plugins, NULL); type; type = wr_plugins_next(plugins, type))
        if (types->count < SCHEMA_MOST_TYPES && wr_plugins_find(plugins, type->is.name, NULL, &error) == type)
            types->items[types->count++] = type;
    qsort(types->items, types->count, sizeof *types->items, compare_names);
}

static int run(const struct command *command, int argc, char **argv)
{
    static struct schema_types types;
    struct json_out out = {0};
    const char *none;
    int result = command_read_name(command, argc, argv, 0, &none);
    if (result != COMMAND_GOES_ON)
        return result;
    result = EXIT_GOOD;
    collect(&types, command_plugins(), &result);
    put_schema(&out, &types);
    return command_write(&out.text) ? result : command_fail("standard output cannot be written");
}

const struct command command_schema = {
    .name = "schema",
    .arguments = "",
    .summary = "Prints a JSON Schema of the configuration, for editors.",
    .help =
        "\n  -h, --help  this text\n\nIt describes the handler types that are installed, as `weir handlers` "
        "lists them.\n",
    .run = run,
};
