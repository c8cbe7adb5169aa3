/* weir formats: lists the formats. */

#include "common/command.h"
#include "common/json.h"
#include "common/table.h"
#include "format/format.h"
#include "text/buffer.h"
#include "text/suggest.h"

static void put_one(struct wr_buffer *out, const struct wr_format *format)
{
    wr_buffer_put_format(out, "%s - %s\n\n", format->name, format->summary);
    wr_buffer_put_format(out, "  makes         %s\n  content type  %s\n", wr_encoder_shape_name(format->shape),
                         format->content_type);
    wr_buffer_put_text(out, wr_options_row(&format->options, 0) ? "\noptions\n" : "\nno options\n");
    table_put(out, &format->options, NULL);
}

static void put_all(struct wr_buffer *out)
{
    const struct wr_format *format;
    for (size_t i = 0; (format = wr_format_at(i)); i++)
        wr_buffer_put_format(out, "%-12s %s\n", format->name, format->summary);
}

static void describe(struct json_object *object, const struct wr_format *format)
{
    json_add_text(object, "name", format->name);
    json_add_text(object, "summary", format->summary);
    json_add_text(object, "makes", wr_encoder_shape_name(format->shape));
    json_add_text(object, "content_type", format->content_type);
    table_add_json(json_add_array(object, "options"), &format->options, NULL);
}

static int print_one(const struct wr_format *format, bool json)
{
    struct wr_buffer out = {0};
    if (!json) {
        put_one(&out, format);
        return command_finish(&out, EXIT_SUCCESS);
    }
    struct json_object *object = json_start_object();
    describe(object, format);
    return json_print(object, JSON_LINES, EXIT_SUCCESS);
}

static int print_all(bool json)
{
    const struct wr_format *format;
    struct wr_buffer out = {0};
    if (!json) {
        put_all(&out);
        return command_finish(&out, EXIT_SUCCESS);
    }
    struct json_object *array = json_start_array();
    for (size_t i = 0; (format = wr_format_at(i)); i++)
        describe(json_add_object(array, NULL), format);
    return json_print(array, JSON_LINES, EXIT_SUCCESS);
}

static int refuse_name(const char *name)
{
    struct wr_suggest suggest;
    char nearest[100];
    const struct wr_format *format;
    wr_suggest_init(&suggest, name);
    for (size_t i = 0; (format = wr_format_at(i)); i++)
        wr_suggest_try(&suggest, format->name);
    return command_fail("unknown format \"%s\"%s", name, wr_suggest_text(&suggest, nearest, sizeof nearest));
}

static int run(const struct command *command, int argc, char **argv)
{
    struct command_listing listing;
    int result = command_read_listing(command, argc, argv, 1, &listing);
    if (result != COMMAND_CONTINUE)
        return result;
    if (!listing.name)
        return print_all(listing.json);
    const struct wr_format *format = wr_format_find(listing.name);
    return format ? print_one(format, listing.json) : refuse_name(listing.name);
}

const struct command command_formats = {
    .name = "formats",
    .arguments = "[FORMAT] [--json]",
    .summary = "Lists the formats that handlers write, or describes one of them.",
    .help = "\n      --json  as JSON\n  -h, --help  this text\n",
    .run = run,
};
