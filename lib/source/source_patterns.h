/* source_patterns: the option "patterns": regular expressions, which a plugin compiles and looks for. */
#ifndef WR_SOURCE_PATTERNS_H
#define WR_SOURCE_PATTERNS_H

#include <stdbool.h>

#include "config/document.h"
#include "handler/plugin.h"

struct wr_error;
struct wr_parse_plugin;
struct wr_patterns;

/* All zeros: none. */
struct wr_source_patterns {
    const struct wr_parse_plugin *plugin; /* loaded until the process ends */
    struct wr_patterns *patterns;
    char *text; /* their JSON */
};

/* Whether they are in the configuration itself: a value that is not the option's text. member: may be NULL. */
bool wr_source_patterns_are_inline(const struct wr_node *member);

/* Reads them. source: the configuration's, for places in messages. where: the option's value: the name of a
 * preset or a file; NULL: they are in the configuration itself. Returns false with the error set. */
bool wr_source_patterns_load(struct wr_source_patterns *patterns, struct wr_plugins *plugins,
                             const struct wr_node *source, const char *where, struct wr_error *error);

void wr_source_patterns_fini(struct wr_source_patterns *patterns);

#endif
