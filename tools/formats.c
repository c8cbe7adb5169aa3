/* weir formats: which formats there are. */

#include <string.h>

#include "text/buffer.h"
#include "common/command.h"
#include "format/format.h"
#include "text/suggest.h"
#include "common/table.h"

static void put_one(struct wr_buffer *out, const struct wr_format *format)
{
    wr_buffer_put_format(out, "%s - %s\n\n", format->name, format->summary);
    wr_buffer_put_format(out, "  makes         %s\n  content type  %s\n", wr_encoder_shape_name(format->shape),
                         format->content_type);
    wr_buffer_put_text(out, wr_options_row(&format->options, 0) ? "\noptions\n" : "\nno options\n");
    table_put(out, &format->options, NULL);
}

static void put_one_json(struct wr_buffer *out, const struct wr_format *format)
{
    wr_buffer_put_char(out, '{');
    table_put_json_member(out, "name", format->name);
    wr_buffer_put_char(out, ',');
    table_put_json_member(out, "summary", format->summary);
    wr_buffer_put_char(out, ',');
    table_put_json_member(out, "makes", wr_encoder_shape_name(format->shape));
    wr_buffer_put_char(out, ',');
    table_put_json_member(out, "content_type", format->content_type);
    wr_buffer_put_text(out, ",\"options\":");
    table_put_json(out, &format->options, NULL);
    wr_buffer_put_char(out, '}');
}

static void put_all(struct wr_buffer *out, bool json)
{
    const struct wr_format *format;
    for (size_t i = 0; (format = wr_format_at(i)); i++) {
        if (!json) {
            wr_buffer_put_format(out, "%-12s %s\n", format->name, format->summary);
            continue;
        }
        wr_buffer_put_text(out, i ? ",\n " : "[");
        put_one_json(out, format);
    }
    wr_buffer_put_text(out, json ? "]\n" : "");
}

static int refuse_name(const char *name)
{
    struct wr_suggest suggest;
    char nearest[100];
    const struct wr_format *format;
    wr_suggest_init(&suggest, name);
    for (size_t i = 0; (format = wr_format_at(i)); i++)
        wr_suggest_try(&suggest, format->name);
    return command_fail("\"%s\" is not a format%s", name, wr_suggest_words(&suggest, nearest, sizeof nearest));
}

static int run(const struct command *command, int argc, char **argv)
{
    struct wr_buffer out = {0};
    struct command_listing listing;
    int result = command_read_listing(command, argc, argv, 1, &listing);
    if (result != COMMAND_GOES_ON)
        return result;
    if (listing.name) {
        const struct wr_format *format = wr_format_find(listing.name);
        if (!format)
            return refuse_name(listing.name);
        if (listing.json)
            put_one_json(&out, format);
        else
            put_one(&out, format);
        wr_buffer_put_text(&out, listing.json ? "\n" : "");
    } else {
        put_all(&out, listing.json);
    }
    return command_write(&out) ? EXIT_GOOD : command_fail("standard output cannot be written");
}

const struct command command_formats = {
    .name = "formats",
    .arguments = "[FORMAT] [--json]",
    .summary = "Shows the formats that handlers can write, or all about one of them.",
    .help = "\n      --json  as JSON\n  -h, --help  this text\n",
    .run = run,
};
