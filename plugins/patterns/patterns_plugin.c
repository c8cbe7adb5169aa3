/* patterns_plugin: the parser "patterns" for sources: see parse/parse_plugin.h. */

#include <weir/host.h>

#include "parse/parse_plugin.h"

#include "patterns.h"

WEIR_PLUGIN_EXPORT const struct wr_parse_plugin *weir_parse_plugin(void);

const struct wr_parse_plugin *weir_parse_plugin(void)
{
    static struct wr_parse_plugin plugin = {
        .size = sizeof plugin,
        .version = WEIR_VERSION,
        .parser_size = sizeof(struct wr_parser),
        .error_size = sizeof(struct wr_error),
        .read = wr_patterns_read,
        .free = wr_patterns_free,
        .find_preset = wr_patterns_find_preset,
    };
    plugin.type = wr_patterns_type();
    return &plugin;
}
