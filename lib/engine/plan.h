/* plan: config -> plan: loads a configuration's handler types and creates its handlers and routes.
 *
 * Everything that can fail and every call into plugins happens here, on the configuring thread, without locks.
 * A commit only swaps pointers. */
#ifndef WR_PLAN_H
#define WR_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "handler/instance.h"
#include "registry/labels.h"
#include "lane/lane.h"
#include "handler/plugin.h"
#include "dispatch/router.h"
#include "text/name_index.h"
#include "text/region.h"

struct wr_error;

/* An item of a route. */
struct wr_plan_item {
    const struct wr_config_route *route; /* NULL: none */
    size_t number;
};

struct wr_plan_handler {
    const char *name; /* borrowed from the configuration */
    struct wr_type *type;
    /* the first that names its type; none if the configuration describes the handler */
    struct wr_plan_item item;
    bool routed;
    struct wr_lane_settings settings;
    /* NULL: the lane keeps its own, or has none (see `ending`). The instance of an unrouted handler was created
     * to validate its options; freed with the plan */
    struct wr_instance *instance;
    int ending;           /* WR_LANE_LIVES, or enum weir_drop: why this process cannot have the handler */
    struct wr_lane *lane; /* NULL: not routed */
    bool new_lane;        /* the plan owns the lane, until it is committed */
    bool is_pushed;       /* it gets pushed_labels */
};

/* An optional handler that is left out, because its type is not installed. */
struct wr_plan_skipped {
    const char *name; /* borrowed from the configuration */
    const char *reason;
    struct wr_document *call; /* the options of the weir_configure call that made it; NULL: none */
};

struct wr_plan {
    struct wr_config *config; /* referenced */
    uint64_t generation;      /* of the engine, when the plan was begun: a commit requires the same */
    struct wr_plan_handler *handlers;
    size_t count;
    struct wr_name_index names;         /* of the handlers */
    struct wr_label_set *labels;        /* referenced; NULL: none */
    struct wr_label_set *pushed_labels; /* with `instance`, for summaries that are pushed; NULL: as labels */
    struct wr_unknown_keys unknown;     /* those of the handlers */
    struct wr_plan_skipped *skipped;
    size_t skipped_count;
    struct wr_region keep;
    struct wr_router *router;
};

/* Where a plan is made. Everything is borrowed. */
struct wr_plan_site {
    struct wr_plugins *plugins;
    struct wr_log *log;
    struct wr_wakeup *wakeup;
    struct wr_deferred_log *deferred_log;
    struct wr_segment_pool *pool;
    struct wr_registry *registry; /* of the series; NULL: the plan is not going to be committed */
    uint64_t labels_number;       /* that and the next one are for the plan's label sets */
    uint64_t generation;          /* of the engine */
    struct wr_lane *lanes;        /* the engine's, in that generation or later; linked by next, never freed */
    void (*after_create)(struct wr_type *type); /* called for each created handler; may be NULL */
    bool has_journal; /* the engine has one in that generation, also if the configuration has none any more */
    bool in_child;    /* a forked child repeats its parent's configuration: a handler that fails is left out */
};

/* Makes a plan; the caller commits or frees it. NULL: error is set, or added to the problems of the
 * configuration, and nothing has changed. */
struct wr_plan *wr_plan_new(struct wr_config *config, const struct wr_plan_site *site, struct wr_error *error);

/* Frees a plan and what it still owns. May be NULL. */
void wr_plan_free(struct wr_plan *plan);

/* Logs a warning for each handler that is left out: those of a weir_configure call once, the others if
 * `is_new`.
 */
void wr_plan_log_skipped(const struct wr_plan *plan, struct wr_log *log, bool is_new);

/* A handler by its name, or NULL. */
const struct wr_plan_handler *wr_plan_find(const struct wr_plan *plan, const char *name);

#endif
