/* config: a configuration, checked as far as possible without loading handler types.
 *
 * Immutable once made, and reference-counted: any thread may read it, and a forked child makes its handlers
 * from it. */
#ifndef WR_CONFIG_H
#define WR_CONFIG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "config/document.h"
#include "config/expand.h"
#include "text/region.h"

struct wr_error;

enum wr_clock_choice { WR_CLOCK_AUTO, WR_CLOCK_SYSTEM };

struct wr_settings {
    int64_t shutdown_timeout_ns;
    int64_t reload_ns; /* 0: the file is not watched */
    int64_t stats_interval_ns;
    int64_t max_series;
    int64_t clock;      /* enum wr_clock_choice */
    const char *status; /* "off", "auto", or the absolute path of a folder */
    weir_map labels;
    const char *journal; /* absolute path of a folder; NULL: no journal */
};

extern const weir_option wr_settings_rows[];

struct wr_config_handler {
    const char *name;
    const char *type;
    const char *plugin;                 /* absolute path of the shared object; NULL: search */
    const struct wr_node *node;         /* the object with its options; NULL: none given */
    struct wr_environment *environment; /* expands its strings */
    struct wr_document *document;       /* the options text of a weir_configure call, which the node belongs to;
                                           NULL: the node belongs to the configuration's document */
};

/* A group's route. */
struct wr_config_route {
    const char *group; /* "*": the default */
    size_t count;
    const char **items;         /* names of handlers, handler types, "inherit" */
    const struct wr_node *node; /* for errors; NULL: made by weir_configure */
};

/* A call of weir_configure, applied again when the file is reread. */
struct wr_config_call {
    const char *group, *type, *options;
    const char *handler; /* the name that its handler was given, and keeps; NULL: none so far */
};

struct wr_config {
    _Atomic unsigned references;
    struct wr_region keep;

    /* from the file or text. A configuration edited by calls shares these with the one it was made from, and
     * keeps a reference to it: nothing here may be freed before the last of them. */
    struct wr_config *origin;           /* NULL: not edited */
    struct wr_document *document;       /* NULL: the empty configuration */
    struct wr_environment *environment; /* when the document was read; NULL: the empty configuration */
    const char *path;                   /* the file that weir_reload reads; NULL: none */
    struct wr_settings settings;
    const struct wr_node *defaults; /* handlers."*": defaults of the common options; NULL: none */

    struct wr_config_handler *handlers;
    size_t handler_count;
    struct wr_config_route *routes;
    size_t route_count;
    struct wr_config_call *calls;
    size_t call_count;
};

/* The empty configuration. Returns one reference. NULL: out of memory. */
struct wr_config *wr_config_new(void);

void wr_config_hold(struct wr_config *config);
void wr_config_drop(struct wr_config *config);

/* A handler by its name, or NULL. */
const struct wr_config_handler *wr_config_find_handler(const struct wr_config *config, const char *name);

/* The route of a group: its own unless `above`, else its nearest ancestor's, else that of "*" (but not for
 * group "weir" and its descendants). NULL: none. */
const struct wr_config_route *wr_config_find_route(const struct wr_config *config, const char *group,
                                                   bool above);

/* Whether it is the group of weir's own metrics or a descendant: "*" does not apply to these. */
bool wr_config_is_own_group(const char *group);

/* ---- Making one (parse, config_edit) --------------------------------------------------------- */

/* One with default settings. Returns one reference. NULL: error is set. */
struct wr_config *wr_config_make(const struct wr_environment *environment, struct wr_error *error);

/* One with the document, environment, path, settings and defaults of `base`, without handlers, routes and
 * calls. With one reference; holds what it shares. NULL: out of memory. */
struct wr_config *wr_config_make_edited(struct wr_config *base);

/* A copy that lives as long as the configuration. NULL: out of memory, or for NULL. */
const char *wr_config_keep_text(struct wr_config *config, const char *text);

/* Append copies; false: out of memory. A handler's document and environment are held, its node is borrowed. */
bool wr_config_add_handler(struct wr_config *config, const struct wr_config_handler *handler);
bool wr_config_add_route(struct wr_config *config, const struct wr_config_route *route);
bool wr_config_add_call(struct wr_config *config, const struct wr_config_call *call);

#endif
