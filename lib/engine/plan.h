/* plan: a configuration made ready to be put in force: its handler types loaded, its handlers created. All that
 * can fail, and all foreign code, is behind when a plan is made; what is left is to swap pointers.
 * [configuring, no locks held] */
#ifndef WR_PLAN_H
#define WR_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "handler/instance.h"
#include "registry/labels.h"
#include "lane/lane.h"
#include "handler/plugin.h"
#include "dispatch/router.h"

struct wr_error;

/* A handler of the plan. */
struct wr_plan_handler {
    const char *name; /* the configuration's */
    struct wr_type *type;
    bool routed;
    struct wr_lane_settings settings;
    struct wr_instance
        *instance;        /* NULL: the lane's own stays, or there is none (see `ending`). One that is not
                             routed was only made to see that it is right, and goes with the plan. */
    int ending;           /* WR_LANE_LIVES; or why it cannot be had in this process: enum weir_drop */
    struct wr_lane *lane; /* only of routed ones */
    bool new_lane;        /* made for the plan, and freed with it unless it is put in force */
};

struct wr_plan {
    struct wr_config *config;
    struct wr_plan_handler *handlers;
    size_t count;
    struct wr_label_set *labels; /* NULL: none */
    struct wr_router *router;
};

/* What a plan is made for. */
struct wr_plan_site {
    struct wr_plugins *plugins;
    struct wr_log *log;
    struct wr_wakeup *wakeup;
    struct wr_deferred_log *words;
    struct wr_segment_pool *pool;
    uint64_t labels_number;
    struct wr_lane *(*find_lane)(void *ctx, const char *name); /* a lane that exists already, or NULL */
    void (*after_create)(void *ctx, struct wr_type *type);
    void *ctx;
    bool in_child; /* the configuration is in force: what fails now is lost for this process, but the rest is
                      not */
};

/* Makes a plan. NULL: the error tells why, and everything is as before. */
struct wr_plan *wr_plan_new(struct wr_config *config, const struct wr_plan_site *site, struct wr_error *error);

/* Frees what was not taken out of it. May be NULL. */
void wr_plan_free(struct wr_plan *plan);

/* The handler of a name, or NULL. */
const struct wr_plan_handler *wr_plan_find(const struct wr_plan *plan, const char *name);

#endif
