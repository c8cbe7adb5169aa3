/* weir handlers, weir sources: list the installed types, or describe one of them. */

#include "common/command.h"
#include "common/json.h"
#include "common/table.h"
#include "config/common_options.h"
#include "format/encoder.h"
#include "handler/instance.h"
#include "handler/plugin.h"
#include "source/source_options.h"
#include "text/buffer.h"
#include "text/common.h"
#include "text/error.h"

static bool is_source(const struct wr_type *type)
{
    return type->kind == &wr_plugins_sources;
}

static const char *path_of(const struct wr_type *type)
{
    return type->path ? type->path : "built in";
}

static struct wr_options_table common_options_of(const struct wr_type *type)
{
    return is_source(type) ? wr_source_options_table(type->source.flags & WEIR_SOURCE_TYPE_PARSES)
                           : type->common_options;
}

/* ---- As text --------------------------------------------------------------------------------- */

static void put_formats(struct wr_buffer *out, const struct wr_type *type)
{
    static const uint32_t shapes[] = {WEIR_FORMAT_LINES, WEIR_FORMAT_DOCUMENTS, WEIR_FORMAT_RECORDS};
    const char *separator = "";
    wr_buffer_put_text(out, "  formats  ");
    for (size_t i = 0; i < WR_COUNT_OF(shapes); i++) {
        if (!(type->is.formats & shapes[i]))
            continue;
        wr_buffer_put_format(out, "%s%s", separator, wr_encoder_shape_name(shapes[i]));
        separator = ", ";
    }
    wr_buffer_put_text(out, *separator ? "\n" : "none\n");
}

static void put_format_option(struct wr_buffer *out, const struct wr_type *type)
{
    wr_buffer_put_text(out, "  format         name      " TABLE_FORMAT_HELP "\n");
    wr_buffer_put_format(out, "  %13s  %8s  default: %s\n", "", "", wr_instance_default_format(type));
}

static void put_one(struct wr_buffer *out, const struct wr_type *type)
{
    const struct wr_options_table common_options = common_options_of(type);
    wr_buffer_put_format(out, "%s - ", type->is.name);
    command_put_text(out, type->is.summary);
    wr_buffer_put_text(out, "\n\n  from     ");
    command_put_text(out, path_of(type));
    wr_buffer_put_text(out, "\n");
    if (!is_source(type))
        put_formats(out, type);
    if (wr_options_row(&type->options, 0))
        wr_buffer_put_text(out, "\noptions\n");
    table_put(out, &type->options, NULL);
    wr_buffer_put_format(out, "\noptions of every %s\n", is_source(type) ? "source" : "handler");
    if (!is_source(type) && type->is.formats)
        put_format_option(out, type);
    table_put(out, &common_options, type->is.defaults);
}

static void put_line(struct wr_buffer *out, const struct wr_type *type)
{
    wr_buffer_put_format(out, "%-12s ", type->is.name);
    command_put_text(out, type->is.summary);
    wr_buffer_put_text(out, " (");
    command_put_text(out, path_of(type));
    wr_buffer_put_text(out, ")\n");
}

/* ---- As JSON --------------------------------------------------------------------------------- */

static void describe(struct json_object *object, const struct wr_type *type)
{
    const struct wr_options_table common_options = common_options_of(type);
    json_add_text(object, "name", type->is.name);
    json_add_text(object, "summary", type->is.summary);
    json_add_text(object, "path", type->path);
    if (is_source(type)) {
        json_add_bool(object, "parses", type->source.flags & WEIR_SOURCE_TYPE_PARSES);
    } else {
        json_add_bool(object, "lines", type->is.formats & WEIR_FORMAT_LINES);
        json_add_bool(object, "documents", type->is.formats & WEIR_FORMAT_DOCUMENTS);
        json_add_bool(object, "records", type->is.formats & WEIR_FORMAT_RECORDS);
        json_add_text(object, "format", type->is.formats ? wr_instance_default_format(type) : NULL);
    }
    table_add_json(json_add_array(object, "options"), &type->options, NULL);
    table_add_json(json_add_array(object, "common_options"), &common_options, type->is.defaults);
}

/* ---- The commands ---------------------------------------------------------------------------- */

static void report_error(void *ctx, const struct wr_error *error)
{
    *(int *)ctx = command_fail("%s", error->text);
}

/* Plugins that cannot be loaded are reported and skipped. */
static int print_all(const struct wr_plugins_kind *kind, bool json)
{
    int result = EXIT_SUCCESS;
    struct wr_buffer out = {0};
    struct wr_plugins *plugins = command_plugins();
    wr_plugins_load_all(plugins, kind, report_error, &result);
    struct json_object *array = json ? json_start_array() : NULL;
    struct wr_type *type = NULL;
    while ((type = wr_plugins_next(plugins, kind, type))) {
        if (json)
            describe(json_add_object(array, NULL), type);
        else
            put_line(&out, type);
    }
    if (json)
        return json_print(array, JSON_LINES, result);
    return command_finish(&out, result);
}

static int print_one(const struct wr_plugins_kind *kind, const char *name, bool json)
{
    struct wr_error error = {0};
    struct wr_buffer out = {0};
    const struct wr_type *type = wr_plugins_find(command_plugins(), kind, name, NULL, &error);
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
    const struct wr_plugins_kind *kind =
        command == &command_sources ? &wr_plugins_sources : &wr_plugins_handlers;
    struct command_listing listing;
    int result = command_read_listing(command, argc, argv, 1, &listing);
    if (result != COMMAND_CONTINUE)
        return result;
    return listing.name ? print_one(kind, listing.name, listing.json) : print_all(kind, listing.json);
}

const struct command command_handlers = {
    .name = "handlers",
    .arguments = "[TYPE] [--json]",
    .summary = "Lists the installed handler types, or describes one of them.",
    .help = "\n      --json  as JSON\n  -h, --help  this text\n\nHandler types are searched for in the folders "
            "of WEIR_PLUGIN_PATH, then in " WEIR_PLUGINDIR ".\n",
    .run = run,
};

const struct command command_sources = {
    .name = "sources",
    .arguments = "[SOURCE] [--json]",
    .summary = "Lists the installed source types, or describes one of them.",
    .help = "\n      --json  as JSON\n  -h, --help  this text\n\nSource types are searched for in the folders "
            "of WEIR_PLUGIN_PATH, then in " WEIR_PLUGINDIR ".\n",
    .run = run,
};
