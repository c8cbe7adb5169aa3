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

struct wr_error;

struct wr_plan_handler {
    const char *name; /* borrowed from the configuration */
    struct wr_type *type;
    bool routed;
    struct wr_lane_settings settings;
    struct wr_instance
        *instance;        /* NULL: the lane keeps its own, or has none (see `ending`). The instance of an
                             unrouted handler was created to validate its options; freed with the plan */
    int ending;           /* WR_LANE_LIVES, or enum weir_drop: why this process cannot have the handler */
    struct wr_lane *lane; /* NULL: not routed */
    bool new_lane;        /* the plan owns the lane, until it is committed */
};

struct wr_plan {
    struct wr_config *config; /* referenced */
    uint64_t generation;      /* of the engine, when the plan was begun: a commit requires the same */
    struct wr_plan_handler *handlers;
    size_t count;
    struct wr_label_set *labels; /* referenced; NULL: none */
    struct wr_router *router;
};

/* Where a plan is made. Everything is borrowed. */
struct wr_plan_site {
    struct wr_plugins *plugins;
    struct wr_log *log;
    struct wr_wakeup *wakeup;
    struct wr_deferred_log *words;
    struct wr_segment_pool *pool;
    uint64_t labels_number;
    uint64_t generation;   /* of the engine */
    struct wr_lane *lanes; /* the engine's, in that generation or later; linked by next, never freed */
    void (*after_create)(void *ctx, struct wr_type *type); /* called for each created handler; may be NULL */
    void *ctx;
    bool in_child; /* a forked child repeats its parent's configuration: a handler that fails is left out */
};

/* Makes a plan; the caller commits or frees it. NULL: error is set, nothing has changed. */
struct wr_plan *wr_plan_new(struct wr_config *config, const struct wr_plan_site *site, struct wr_error *error);

/* Frees a plan and what it still owns. May be NULL. */
void wr_plan_free(struct wr_plan *plan);

/* A handler by its name, or NULL. */
const struct wr_plan_handler *wr_plan_find(const struct wr_plan *plan, const char *name);

#endif
