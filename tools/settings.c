/* weir settings: what a configuration may say about weir as a whole. */

#include "text/buffer.h"
#include "common/command.h"
#include "config/config.h"
#include "config/options.h"
#include "common/table.h"

static int run(const struct command *command, int argc, char **argv)
{
    const struct wr_options_table table = WR_OPTIONS_TABLE(wr_settings_rows, struct wr_settings);
    struct wr_buffer out = {0};
    struct command_listing listing;
    int result = command_read_listing(command, argc, argv, 0, &listing);
    if (result != COMMAND_GOES_ON)
        return result;
    if (listing.json)
        table_put_json(&out, &table, NULL);
    else
        table_put(&out, &table, NULL);
    wr_buffer_put_text(&out, listing.json ? "\n" : "");
    return command_write(&out) ? EXIT_GOOD : command_fail("standard output cannot be written");
}

const struct command command_settings = {
    .name = "settings",
    .arguments = "[--json]",
    .summary = "Shows the settings that a configuration may have, and their defaults.",
    .help = "\n      --json  as JSON\n  -h, --help  this text\n",
    .run = run,
};
