#include "config/sections.h"

#include <string.h>

#include "config/common_options.h"
#include "config/config.h"

/* In the order of messages. */
static const char *const names[WR_SECTION_UNKNOWN] = {
    [WR_SECTION_SCHEMA] = "$schema",    [WR_SECTION_INCLUDE] = "include", [WR_SECTION_SETTINGS] = "settings",
    [WR_SECTION_HANDLERS] = "handlers", [WR_SECTION_GROUPS] = "groups",   [WR_SECTION_METRICS] = "metrics",
    [WR_SECTION_SOURCES] = "sources",
};

const char *wr_sections_name(enum wr_section section)
{
    return names[section];
}

enum wr_section wr_sections_find(const char *name)
{
    unsigned section = 0;
    while (section < WR_SECTION_UNKNOWN && strcmp(names[section], name) != 0)
        section++;
    return (enum wr_section)section;
}

const char *wr_sections_home(const char *name)
{
    const struct wr_options_table settings = WR_OPTIONS_TABLE(wr_settings_rows, struct wr_settings);
    const struct wr_options_table common = wr_common_options_table();
    if (wr_sections_find(name) != WR_SECTION_UNKNOWN)
        return "it belongs at the top of the configuration";
    if (wr_options_find(&settings, name))
        return "it belongs in \"settings\"";
    if (wr_options_find(&common, name) || strcmp(name, "format") == 0)
        return "it belongs in a handler, or in \"*\" of \"handlers\"";
    return NULL;
}
