/* parse_plugin: the parser "patterns" as a plugin, patterns.parser.so: it needs PCRE2, which programs with weir
 * must not be linked with.
 *
 * It is a part of weir: its parts share structs, so both sides have to be of one build. It has copies of what
 * it uses of the core, and both use one malloc. */
#ifndef WR_PARSE_PLUGIN_H
#define WR_PARSE_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <weir/version.h>

#include "parse/parser_type.h"
#include "text/error.h"

struct wr_patterns;

/* What the plugin offers. All but the first four is read only if these are equal on both sides. */
struct wr_parse_plugin {
    size_t size;         /* sizeof(struct wr_parse_plugin) */
    const char *version; /* of weir */
    size_t parser_size;  /* sizeof(struct wr_parser) */
    size_t error_size;   /* sizeof(struct wr_error) */

    const struct wr_parser_type *type;
    /* as those of plugins/patterns/patterns.h */
    struct wr_patterns *(*read)(const char *name, const char *text, size_t length, struct wr_error *error);
    void (*free)(struct wr_patterns *patterns);
    const char *(*find_preset)(const char *name);
};

/* The entry point is weir_parse_plugin. */
typedef const struct wr_parse_plugin *wr_parse_plugin_get(void);

static inline bool wr_parse_plugin_fits(const struct wr_parse_plugin *plugin)
{
    return plugin->size == sizeof *plugin && strcmp(plugin->version, WEIR_VERSION) == 0 &&
           plugin->parser_size == sizeof(struct wr_parser) && plugin->error_size == sizeof(struct wr_error);
}

#endif
