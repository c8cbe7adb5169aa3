/* weir schema: the configuration as a JSON Schema, for editors.
 *
 * Draft 7: VS Code and other editors with its language service support all of it, but only parts of later
 * drafts. Alternatives are `if` and `then`, so that an editor offers the options of the type that is named and
 * reports what is wrong with these, not with each of the alternatives. */

#include <stdlib.h>
#include <string.h>

#include <weir/version.h>

#include "common/command.h"
#include "common/json.h"
#include "config/config.h"
#include "config/metrics.h"
#include "config/transform.h"
#include "handler/plugin.h"
#include "registry/family.h"
#include "registry/name.h"
#include "schema_options.h"
#include "schema_types.h"
#include "text/error.h"

#define CONTROL "\\u0000-\\u001f\\u007f-\\u009f"

/* ---- Routes ---------------------------------------------------------------------------------- */

/* Any name is valid, because handlers are named by the configuration; names of types are offered. */
static void add_destination_definition(struct json_object *definitions, const struct schema_types *types)
{
    struct json_object *choices = json_add_array(json_add_object(definitions, "destination"), "anyOf");
    schema_add_route_names(json_add_object(choices, NULL), types);
    schema_add_reference(choices, NULL, "name");
}

static void add_to(struct json_object *properties)
{
    struct json_object *to = json_add_object(properties, "to");
    json_add_text(to, "description", "the handler, or an array of handlers");
    struct json_object *choices = json_add_array(to, "anyOf");
    schema_add_reference(choices, NULL, "destination");
    struct json_object *array = json_add_object(choices, NULL);
    json_add_text(array, "type", "array");
    json_add_count(array, "minItems", 1);
    schema_add_reference(array, "items", "destination");
}

/* An object in a route. */
static void add_transform_definition(struct json_object *definitions)
{
    const struct wr_options_table table = wr_transform_table();
    struct json_object *object = json_add_object(definitions, "transform");
    json_add_text(object, "description", "handlers, and what is done with the values on their way there");
    json_add_text(object, "type", "object");
    json_add_bool(object, "additionalProperties", false);
    schema_add_required(object, "to");
    struct json_object *properties = json_add_object(object, "properties");
    add_to(properties);
    schema_add_options(properties, &table, NULL);
    struct json_object *rename = json_add_object(properties, "rename");
    json_add_text(rename, "description", "new names, by names or patterns with one '*'");
    json_add_text(rename, "type", "object");
    schema_add_reference(rename, "additionalProperties", "name");
}

static void add_route_definition(struct json_object *definitions)
{
    struct json_object *item = json_add_object(definitions, "route_item");
    struct json_object *kinds = json_add_array(item, "anyOf");
    schema_add_reference(kinds, NULL, "destination");
    schema_add_reference(kinds, NULL, "transform");
    struct json_object *route = json_add_object(definitions, "route");
    json_add_text(
        route, "description",
        "the name of a handler or of a handler type, \"inherit\", an object with \"to\", or an array of "
        "these; [] is no handler");
    struct json_object *choices = json_add_array(route, "anyOf");
    schema_add_reference(choices, NULL, "route_item");
    struct json_object *array = json_add_object(choices, NULL);
    json_add_text(array, "type", "array");
    schema_add_reference(array, "items", "route_item");
}

/* "*" has no parent to inherit from. */
static void add_default_route(struct json_object *properties)
{
    struct json_object *route = json_add_object(properties, "*");
    json_add_text(route, "description", "the route of all groups without their own");
    schema_add_all_of(route, "route");
    struct json_object *choices = json_add_array(json_add_object(route, "not"), "anyOf");
    schema_add_constant(choices, NULL, "inherit");
    struct json_object *array = json_add_object(choices, NULL);
    json_add_text(array, "type", "array");
    schema_add_constant(array, "contains", "inherit");
}

static void add_pattern(struct json_object *parent, const char *key, const char *pattern, const char *rule)
{
    struct json_object *object = json_add_object(parent, key);
    json_add_text(object, "type", "string");
    json_add_text(object, "pattern", pattern);
    json_add_text(object, "patternErrorMessage", rule);
    json_add_count(object, "maxLength", WR_NAME_LONGEST);
}

/* ---- Sections -------------------------------------------------------------------------------- */

static void add_settings(struct json_object *properties)
{
    const struct wr_options_table table = WR_OPTIONS_TABLE(wr_settings_rows, struct wr_settings);
    struct json_object *section =
        schema_add_object(properties, "settings", "settings of weir as a whole", true);
    schema_add_options(json_add_object(section, "properties"), &table, NULL);
}

static void add_handlers(struct json_object *properties)
{
    struct json_object *section = schema_add_object(properties, "handlers", "destinations, by name", false);
    struct json_object *names = json_add_object(section, "propertyNames");
    schema_add_all_of(names, "name");
    schema_add_constant(names, "not", "inherit");
    schema_add_reference(json_add_object(section, "properties"), "*", "defaults");
    schema_add_reference(section, "additionalProperties", "handler");
}

static void add_sources(struct json_object *properties)
{
    struct json_object *section =
        schema_add_object(properties, "sources",
                          "what `weir relay` and programs that start sources read values from, by name", false);
    schema_add_all_of(json_add_object(section, "propertyNames"), "name");
    schema_add_reference(section, "additionalProperties", "source");
}

static void add_groups(struct json_object *properties)
{
    struct json_object *section =
        schema_add_object(properties, "groups", "the routes: which group goes to which handlers", false);
    add_pattern(section, "propertyNames", "^(?:\\*|[^.*" CONTROL "]+(?:\\.[^.*" CONTROL "]+)*)$",
                "a group is \"*\", or names separated by single dots, without '*' and control characters");
    add_default_route(json_add_object(section, "properties"));
    schema_add_reference(section, "additionalProperties", "route");
}

static void add_bucket_definition(struct json_object *properties)
{
    struct json_object *buckets = json_add_object(properties, "buckets");
    json_add_text(buckets, "description",
                  "upper bounds of a histogram's buckets, rising, or exponential(START, FACTOR, COUNT) or "
                  "linear(START, WIDTH, COUNT)");
    struct json_object *choices = json_add_array(buckets, "anyOf");
    struct json_object *bounds = json_add_object(choices, NULL);
    json_add_text(bounds, "type", "array");
    json_add_count(bounds, "minItems", 1);
    json_add_count(bounds, "maxItems", WR_FAMILY_BUCKETS_MAX);
    json_add_text(json_add_object(bounds, "items"), "type", "number");
    schema_add_reference(choices, NULL, "text");
}

/* An entry is the name of an instrument, or an object. */
static void add_metric_definition(struct json_object *definitions)
{
    const struct wr_options_table table = wr_metrics_table();
    struct json_object *metric = json_add_object(definitions, "metric");
    json_add_text(metric, "description", "an instrument, or what the name means in full");
    struct json_object *choices = json_add_array(metric, "anyOf");
    struct json_object *words = json_add_array(json_add_object(choices, NULL), "enum");
    for (int i = WEIR_VALUE; i <= WEIR_HISTOGRAM; i++)
        json_add_text(words, NULL, wr_family_instrument_name((enum weir_instrument)i));
    struct json_object *object = json_add_object(choices, NULL);
    json_add_text(object, "type", "object");
    json_add_bool(object, "additionalProperties", false);
    struct json_object *properties = json_add_object(object, "properties");
    schema_add_options(properties, &table, NULL);
    add_bucket_definition(properties);
}

static void add_metrics(struct json_object *properties)
{
    struct json_object *section =
        schema_add_object(properties, "metrics",
                          "what names mean, by group and name; '*' in a name matches any characters", false);
    struct json_object *names = json_add_object(section, "additionalProperties");
    json_add_text(names, "type", "object");
    schema_add_reference(names, "additionalProperties", "metric");
}

static void add_included_definition(struct json_object *definitions)
{
    struct json_object *included = json_add_object(definitions, "included");
    schema_add_all_of(included, "text");
    json_add_count(included, "minLength", 1);
}

/* A path or pattern, or an array of these. */
static void add_include(struct json_object *properties)
{
    struct json_object *include = json_add_object(properties, "include");
    json_add_text(include, "description",
                  "files that belong to the configuration, relative to this one; * and ? match several");
    struct json_object *choices = json_add_array(include, "anyOf");
    schema_add_reference(choices, NULL, "included");
    struct json_object *array = json_add_object(choices, NULL);
    json_add_text(array, "type", "array");
    schema_add_reference(array, "items", "included");
}

static void add_definitions(struct json_object *schema, const struct schema_types *types,
                            const struct schema_types *sources)
{
    struct json_object *definitions = json_add_object(schema, "definitions");
    schema_add_value_definitions(definitions);
    add_pattern(definitions, "name", "^[^" CONTROL "]+$",
                "a name must have 1 to 255 bytes and no control characters");
    schema_add_handler_definitions(definitions, types);
    schema_add_source_definitions(definitions, sources);
    add_destination_definition(definitions, types);
    add_transform_definition(definitions);
    add_route_definition(definitions);
    add_metric_definition(definitions);
    add_included_definition(definitions);
}

static struct json_object *make_schema(const struct schema_types *types, const struct schema_types *sources)
{
    struct json_object *schema = json_start_object();
    json_add_text(schema, "$schema", "http://json-schema.org/draft-07/schema#");
    json_add_text(schema, "$comment", "made by `weir schema`, weir " WEIR_VERSION);
    json_add_text(schema, "title", "weir's configuration: where the values of metric streams go");
    json_add_text(schema, "type", "object");
    json_add_bool(schema, "allowComments", true); /* for VS Code */
    json_add_bool(schema, "additionalProperties", false);
    struct json_object *properties = json_add_object(schema, "properties");
    struct json_object *reference = json_add_object(properties, "$schema");
    json_add_text(reference, "description", "for editors; weir ignores it");
    json_add_text(reference, "type", "string");
    add_include(properties);
    add_settings(properties);
    add_sources(properties);
    add_handlers(properties);
    add_groups(properties);
    add_metrics(properties);
    add_definitions(schema, types, sources);
    return schema;
}

/* ---- The command ----------------------------------------------------------------------------- */

static void report_error(void *ctx, const struct wr_error *error)
{
    *(int *)ctx = command_fail("%s", error->text);
}

static int compare_names(const void *a, const void *b)
{
    const struct wr_type *const *left = a, *const *right = b;
    return strcmp((*left)->is.name, (*right)->is.name);
}

/* Of several types with the same name, the one that a configuration would use. */
static void collect_types(struct schema_types *types, const struct wr_plugins_kind *kind, int *result)
{
    struct wr_error error;
    struct wr_plugins *plugins = command_plugins();
    struct wr_type *type = NULL;
    wr_plugins_load_all(plugins, kind, report_error, result);
    while ((type = wr_plugins_next(plugins, kind, type)))
        if (types->count < SCHEMA_MAX_TYPES &&
            wr_plugins_find(plugins, kind, type->is.name, NULL, &error) == type)
            types->items[types->count++] = type;
    qsort(types->items, types->count, sizeof *types->items, compare_names);
}

static int run(const struct command *command, int argc, char **argv)
{
    static struct schema_types types, sources;
    const char *none;
    int result = command_read_name(command, argc, argv, 0, &none);
    if (result != COMMAND_CONTINUE)
        return result;
    result = EXIT_SUCCESS;
    collect_types(&types, &wr_plugins_handlers, &result);
    collect_types(&sources, &wr_plugins_sources, &result);
    return json_print(make_schema(&types, &sources), JSON_INDENTED, result);
}

const struct command command_schema = {
    .name = "schema",
    .arguments = "",
    .summary = "Prints a JSON Schema of the configuration, for editors.",
    .help =
        "\n  -h, --help  this text\n\nThe schema describes the installed handler and source types, which `weir "
        "handlers`\nand `weir sources` list.\n",
    .run = run,
};
