/* weir handlers: which handler types are installed. */

#include "text/buffer.h"
#include "command.h"
#include "text/common.h"
#include "config/common_options.h"
#include "format/encoder.h"
#include "text/error.h"
#include "handler/instance.h"
#include "handler/plugin.h"
#include "table.h"

static void put_takes(struct wr_buffer *out, const struct wr_type *type)
{
    static const uint32_t shapes[] = {WEIR_FORMAT_LINES, WEIR_FORMAT_DOCUMENTS, WEIR_FORMAT_RECORDS};
    const char *before = "";
    for (size_t i = 0; i < WR_COUNT_OF(shapes); i++) {
        if (!(type->is.formats & shapes[i]))
            continue;
        wr_buffer_put_format(out, "%s%s", before, wr_encoder_shape_name(shapes[i]));
        before = ", ";
    }
    wr_buffer_put_text(out, *before ? "\n" : "none\n");
}

static const char *place_of(const struct wr_type *type)
{
    return type->path ? type->path : "built in";
}

/* ---- For people ------------------------------------------------------------------------------ */

static void put_one(struct wr_buffer *out, const struct wr_type *type)
{
    wr_buffer_put_format(out, "%s - %s\n\n", type->is.name, type->is.summary);
    wr_buffer_put_format(out, "  from     %s\n  formats  ", place_of(type));
    put_takes(out, type);
    if (wr_options_row(&type->options, 0))
        wr_buffer_put_text(out, "\noptions\n");
    table_put(out, &type->options, NULL);
    wr_buffer_put_text(out, "\noptions that every handler has\n");
    if (type->is.formats) {
        wr_buffer_put_text(out, "  format         name      " TABLE_FORMAT_HELP "\n");
        wr_buffer_put_format(out, "  %13s  %8s  default: %s\n", "", "", wr_instance_default_format(type));
    }
    table_put(out, &type->common_options, type->is.defaults);
}

/* ---- For programs ---------------------------------------------------------------------------- */

static void put_one_json(struct wr_buffer *out, const struct wr_type *type)
{
    wr_buffer_put_char(out, '{');
    table_put_json_member(out, "name", type->is.name);
    wr_buffer_put_char(out, ',');
    table_put_json_member(out, "summary", type->is.summary);
    wr_buffer_put_char(out, ',');
    table_put_json_member(out, "path", type->path);
    wr_buffer_put_format(out, ",\"lines\":%s,\"documents\":%s,\"records\":%s,",
                         type->is.formats & WEIR_FORMAT_LINES ? "true" : "false",
                         type->is.formats & WEIR_FORMAT_DOCUMENTS ? "true" : "false",
                         type->is.formats & WEIR_FORMAT_RECORDS ? "true" : "false");
    table_put_json_member(out, "format", type->is.formats ? wr_instance_default_format(type) : NULL);
    wr_buffer_put_text(out, ",\"options\":");
    table_put_json(out, &type->options, NULL);
    wr_buffer_put_text(out, ",\"common_options\":");
    table_put_json(out, &type->common_options, type->is.defaults);
    wr_buffer_put_char(out, '}');
}

/* ---- All of them ----------------------------------------------------------------------------- */

static void complain(void *ctx, const struct wr_error *error)
{
    *(int *)ctx = command_fail("%s", error->text);
}

static int put_all(struct wr_buffer *out, struct wr_plugins *plugins, bool json)
{
    int result = EXIT_GOOD;
    const char *before = "[";
    wr_plugins_load_all(plugins, complain, &result);
    for (struct wr_type *type = wr_plugins_next(plugins, NULL); type; type = wr_plugins_next(plugins, type)) {
        if (!json) {
            wr_buffer_put_format(out, "%-12s %s (%s)\n", type->is.name, type->is.summary, place_of(type));
            continue;
        }
        wr_buffer_put_text(out, before);
        put_one_json(out, type);
        before = ",\n ";
    }
    if (json)
        wr_buffer_put_text(out, *before == '[' ? "[]\n" : "]\n");
    return result;
}

static int put_named(struct wr_buffer *out, struct wr_plugins *plugins, const char *name, bool json)
{
    struct wr_error error = {0};
    const struct wr_type *type = wr_plugins_find(plugins, name, NULL, &error);
    if (!type)
        return command_fail("%s", error.text);
    if (json)
        put_one_json(out, type);
    else
        put_one(out, type);
    wr_buffer_put_text(out, json ? "\n" : "");
    return EXIT_GOOD;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct wr_buffer out = {0};
    struct command_listing listing;
    int result = command_read_listing(command, argc, argv, 1, &listing);
    if (result != COMMAND_GOES_ON)
        return result;
    result = listing.name ? put_named(&out, command_plugins(), listing.name, listing.json)
                          : put_all(&out, command_plugins(), listing.json);
    return command_write(&out) ? result : command_fail("standard output cannot be written");
}

const struct command command_handlers = {
    .name = "handlers",
    .arguments = "[TYPE] [--json]",
    .summary = "Shows the handler types that are installed, or all about one of them.",
    .help = "\n      --json  as JSON\n  -h, --help  this text\n\nHandler types are looked for in the folders "
            "of WEIR_PLUGIN_PATH, then in " WEIR_PLUGINDIR ".\n",
    .run = run,
};
