/* weir settings: lists the settings of a configuration. */

#include "common/command.h"
#include "common/json.h"
#include "common/table.h"
#include "config/config.h"
#include "config/options.h"
#include "text/buffer.h"

static int run(const struct command *command, int argc, char **argv)
{
    const struct wr_options_table table = WR_OPTIONS_TABLE(wr_settings_rows, struct wr_settings);
    struct wr_buffer out = {0};
    struct command_listing listing;
    int result = command_read_listing(command, argc, argv, 0, &listing);
    if (result != COMMAND_CONTINUE)
        return result;
    if (!listing.json) {
        table_put(&out, &table, NULL);
        return command_finish(&out, EXIT_SUCCESS);
    }
    struct json_object *array = json_start_array();
    table_add_json(array, &table, NULL);
    return json_print(array, JSON_LINES, EXIT_SUCCESS);
}

const struct command command_settings = {
    .name = "settings",
    .arguments = "[--json]",
    .summary = "Lists the settings of a configuration and their defaults.",
    .help = "\n      --json  as JSON\n  -h, --help  this text\n",
    .run = run,
};
