/* weir sources: lists the installed source types. */

#include "common/command.h"
#include "common/json.h"
#include "common/table.h"
#include "source/source_options.h"
#include "source/source_type.h"
#include "text/buffer.h"
#include "text/error.h"

static struct wr_options_table common_options_of(const struct wr_source_type *type)
{
    return wr_source_options_table(type->is.flags & WEIR_SOURCE_TYPE_PARSES);
}

/* ---- As text --------------------------------------------------------------------------------- */

static void put_one(struct wr_buffer *out, const struct wr_source_type *type)
{
    const struct wr_options_table common_options = common_options_of(type);
    wr_buffer_put_format(out, "%s - ", type->is.name);
    command_put_text(out, type->is.summary);
    wr_buffer_put_text(out, "\n\n  from     ");
    command_put_text(out, type->path);
    if (wr_options_row(&type->options, 0))
        wr_buffer_put_text(out, "\n\noptions");
    wr_buffer_put_text(out, "\n");
    table_put(out, &type->options, NULL);
    wr_buffer_put_text(out, "\noptions of every source\n");
    table_put(out, &common_options, type->is.defaults);
}

static void put_line(struct wr_buffer *out, const struct wr_source_type *type)
{
    wr_buffer_put_format(out, "%-12s ", type->is.name);
    command_put_text(out, type->is.summary);
    wr_buffer_put_text(out, " (");
    command_put_text(out, type->path);
    wr_buffer_put_text(out, ")\n");
}

/* ---- As JSON --------------------------------------------------------------------------------- */

static void describe(struct json_object *object, const struct wr_source_type *type)
{
    const struct wr_options_table common_options = common_options_of(type);
    json_add_text(object, "name", type->is.name);
    json_add_text(object, "summary", type->is.summary);
    json_add_text(object, "path", type->path);
    json_add_bool(object, "parses", type->is.flags & WEIR_SOURCE_TYPE_PARSES);
    table_add_json(json_add_array(object, "options"), &type->options, NULL);
    table_add_json(json_add_array(object, "common_options"), &common_options, type->is.defaults);
}

/* ---- The command ----------------------------------------------------------------------------- */

static struct wr_source_types types;

static void report_error(void *ctx, const struct wr_error *error)
{
    *(int *)ctx = command_fail("%s", error->text);
}

/* Plugins that cannot be loaded are reported and skipped. */
static int print_all(bool json)
{
    int result = EXIT_SUCCESS;
    struct wr_buffer out = {0};
    wr_source_types_load_all(&types, command_plugins(), report_error, &result);
    struct json_object *array = json ? json_start_array() : NULL;
    for (const struct wr_source_type *type = wr_source_types_next(&types, NULL); type;
         type = wr_source_types_next(&types, type)) {
        if (json)
            describe(json_add_object(array, NULL), type);
        else
            put_line(&out, type);
    }
    if (json)
        return json_print(array, JSON_LINES, result);
    return command_finish(&out, result);
}

static int print_one(const char *name, bool json)
{
    struct wr_error error = {0};
    struct wr_buffer out = {0};
    const struct wr_source_type *type = wr_source_types_find(&types, command_plugins(), name, NULL, &error);
    if (!type)
        return command_fail("%s", error.text);
    if (!json) {
        put_one(&out, type);
        return command_finish(&out, EXIT_SUCCESS);
    }
    struct json_object *object = json_start_object();
    describe(object, type);
    return json_print(object, JSON_LINES, EXIT_SUCCESS);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct command_listing listing;
    int result = command_read_listing(command, argc, argv, 1, &listing);
    if (result != COMMAND_CONTINUE)
        return result;
    return listing.name ? print_one(listing.name, listing.json) : print_all(listing.json);
}

const struct command command_sources = {
    .name = "sources",
    .arguments = "[SOURCE] [--json]",
    .summary = "Lists the installed source types, or describes one of them.",
    .help = "\n      --json  as JSON\n  -h, --help  this text\n\nSource types are searched for in the folders "
            "of WEIR_PLUGIN_PATH, then in " WEIR_PLUGINDIR ".\n",
    .run = run,
};
