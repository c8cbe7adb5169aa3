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
#include "config/options.h"
#include "config/problems.h"
#include "config/unknown_keys.h"
#include "os/file_mark.h"
#include "registry/metric_rules.h"
#include "text/name_index.h"
#include "text/region.h"

struct wr_error;
struct wr_transform;

/* How much a configuration may hold. What it costs to read it and to put it in force grows with its text, and
 * with the number of handlers that all groups reach together, as a route may be inherited by many groups. */
enum {
    WR_CONFIG_HANDLERS_MAX = 10000,
    WR_CONFIG_SOURCES_MAX = 1000,
    WR_CONFIG_GROUPS_MAX = 100000,
    WR_CONFIG_ROUTE_MAX = 1000,     /* names in the route of a group */
    WR_CONFIG_PATTERNS_MAX = 1000,  /* entries of "metrics" with '*': each new name is compared with them */
    WR_CONFIG_REACHED_MAX = 1000000 /* handlers of all groups, inherited ones included */
};

/* The default of settings.instance. */
#define WR_CONFIG_INSTANCE "${HOSTNAME}:${PID}"

enum wr_clock_choice { WR_CLOCK_AUTO, WR_CLOCK_SYSTEM };

enum wr_unknown_keys_choice { WR_UNKNOWN_KEYS_ERROR, WR_UNKNOWN_KEYS_WARN };

struct wr_settings {
    int64_t shutdown_timeout_ns;
    int64_t reload_ns; /* 0: the file is not watched */
    int64_t stats_interval_ns;
    int64_t max_series, max_series_per_name;
    int64_t expiry_ns;  /* 0: never */
    int64_t clock;      /* enum wr_clock_choice */
    const char *status; /* "off", "auto", or the absolute path of a folder */
    weir_map labels;
    const char *instance; /* only for checks: the plan expands it anew, as a child has another PID */
    int64_t unknown_keys; /* enum wr_unknown_keys_choice */
    const char *journal;  /* absolute path of a folder; NULL: no journal */
};

extern const weir_option wr_settings_rows[];

/* A handler or a source. */
struct wr_config_handler {
    const char *name;
    const char *type;                   /* NULL: it has errors, see `problems` */
    const char *plugin;                 /* absolute path of the shared object; NULL: search */
    const struct wr_node *node;         /* the object with its options; NULL: none given */
    struct wr_environment *environment; /* expands its strings */
    const struct wr_config *home;       /* the tee that it is from, whose defaults it has; NULL: none */
    struct wr_document *document;       /* the options text of a weir_configure call, which the node belongs to;
                                           NULL: the node belongs to the configuration's document */
};

/* A group's route. */
struct wr_config_route {
    const char *group; /* "*": the default */
    size_t count;
    const char **items;               /* names of handlers, handler types, "inherit" */
    const struct wr_node **nodes;     /* of the items, for errors; NULL: made by weir_configure */
    struct wr_transform **transforms; /* of the items, NULL for one that gets the values as they are; borrowed
                                         from the configuration that was read. NULL: none has one */
    const struct wr_node *node;       /* the whole; NULL: made by weir_configure */
};

/* A call of weir_configure, applied again when the file is reread. */
struct wr_config_call {
    const char *group, *type, *options;
    const char *handler; /* the name that its handler was given, and keeps; NULL: none so far */
};

/* A file that the configuration consists of, or a folder of such files. */
struct wr_watched {
    const char *path;         /* absolute */
    struct wr_file_mark mark; /* from before it was read */
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
    struct wr_document **documents;     /* all, in the order in which they apply: the included ones, and last
                                           `document` */
    size_t document_count;
    struct wr_watched *watched; /* all files, and folders whose files are included */
    size_t watched_count;
    struct wr_settings settings;
    bool ignores_unknown;         /* settings.unknown_keys, which applies to all documents */
    struct wr_problems *problems; /* gets the errors of it, of its plan and of its sources, borrowed; NULL: the
                                     first error ends what finds it. A configuration with errors is used for
                                     nothing but finding others */
    struct wr_unknown_keys unknown; /* those that were found without the handler types; see origin */
    _Atomic bool logged;            /* its warnings, with those of the handlers; see origin */
    const struct wr_node *labels;   /* settings.labels, for errors; NULL: none */
    const struct wr_node *instance; /* settings.instance; NULL: none, so WR_CONFIG_INSTANCE */
    /* the section "metrics", borrowed from `origin` in an edited configuration */
    struct wr_metric_rules metrics;
    size_t patterns_read;              /* entries of it with '*' */
    const struct wr_node *defaults;    /* handlers."*": defaults of the common options; NULL: none */
    struct wr_transform *transforms;   /* of its routes, linked by next; see origin */
    struct wr_config_handler *sources; /* the section "sources", borrowed from `origin` in an edited one */
    size_t source_count;

    struct wr_config_handler *handlers;
    size_t handler_count;
    struct wr_config_route *routes;
    size_t route_count;
    struct wr_name_index handler_names, route_groups; /* their numbers in the arrays */
    struct wr_name_index definitions;                 /* while it is read: see wr_config_define */
    struct wr_expanded expanded;                      /* by its own strings; handlers expand theirs later */
    struct wr_config_call *calls;
    size_t call_count;

    struct wr_config *without_tee, *tee; /* what this was made from, see tee.h; NULL: there is no tee */
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

/* wr_name_is_own_group, for folders that do not use the registry. */
bool wr_config_is_own_group(const char *group);

/* What expands its strings. Never NULL. */
const struct wr_environment *wr_config_environment(const struct wr_config *config);

/* The one that was read from the document: itself, unless it is edited. */
struct wr_config *wr_config_origin(struct wr_config *config);

/* ---- Making one (config_read, config_edit) --------------------------------------------------- */

/* One with default settings. Returns one reference. NULL: error is set. */
struct wr_config *wr_config_make(struct wr_error *error);

/* One with the document, environment, path, settings and defaults of `base`, without handlers, routes and
 * calls. With one reference; holds what it shares. NULL: out of memory. */
struct wr_config *wr_config_make_edited(struct wr_config *base);

/* Fills a struct from a table; strings live as long as the configuration, and what they expand to is counted in
 * it. */
struct wr_options_fill wr_config_fill(struct wr_config *config, struct wr_options_table table, void *target);

/* The same for its settings. */
struct wr_options_fill wr_config_fill_settings(struct wr_config *config);

/* Reads and expands a string, which lives as long as the configuration. */
bool wr_config_read_string(struct wr_config *config, const struct wr_node *node, const char **text,
                           struct wr_error *error);

/* A copy that lives as long as the configuration. NULL: out of memory, or for NULL. */
const char *wr_config_keep_text(struct wr_config *config, const char *text);

/* A path, made absolute from the configuration's working folder. NULL: out of memory. */
const char *wr_config_keep_path(struct wr_config *config, const char *path);

/* Called for each handler, group, source and entry of "metrics", which has a group. If another document defines
 * it too, the error names both places. */
bool wr_config_define(struct wr_config *config, const struct wr_node *node, const char *section,
                      const char *group, struct wr_error *error);

/* Append; false: out of memory. A document is held, a path to watch is made absolute. */
bool wr_config_add_document(struct wr_config *config, struct wr_document *document);
bool wr_config_add_watched(struct wr_config *config, const char *path, struct wr_file_mark mark);

/* Appends an entry of "metrics", of zeros. NULL: out of memory. */
struct wr_metric_rule *wr_config_add_metric(struct wr_config *config);

/* Append copies; false: out of memory. A handler's document and environment are held, nodes are borrowed. An
 * "inherit" that a route repeats is left out: it would double what a route costs with each level of groups. */
bool wr_config_add_handler(struct wr_config *config, const struct wr_config_handler *handler);
bool wr_config_add_source(struct wr_config *config, const struct wr_config_handler *source);
bool wr_config_add_route(struct wr_config *config, const struct wr_config_route *route);
bool wr_config_add_call(struct wr_config *config, const struct wr_config_call *call);

#endif
