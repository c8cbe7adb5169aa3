/* router: which records go to which lanes, for one configuration. [dispatcher's round] */
#ifndef WR_ROUTER_H
#define WR_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "dispatch/feed.h"
#include "registry/registry.h"

/* Where the records of some groups go. */
struct wr_route {
    const char *group; /* of the configuration's entry; NULL: the route of those that have none */
    struct wr_feed_lane **lanes;
    size_t lane_count;
    struct wr_feed **feeds;
    size_t feed_count;
    uint32_t sync_lanes;
    bool waiting;            /* the gates of its groups are at WAIT */
    struct wr_group *groups; /* that were resolved to it so far */
};

struct wr_router {
    struct wr_config *config;
    struct wr_feed_lane *lanes;
    size_t lane_count;
    struct wr_feed *feeds;
    size_t feed_count;
    struct wr_route *routes; /* number 0: to nobody */
    size_t route_count;
    uint32_t *by_series; /* a series' route, plus 1; 0: not resolved yet */
    uint32_t by_series_room;
};

/* How names of handlers become lanes. */
typedef struct wr_lane *wr_router_find_lane(void *ctx, const char *handler, struct wr_lane_settings *settings);

/* Builds the router of a configuration, which it holds. NULL without memory. */
struct wr_router *wr_router_new(struct wr_config *config, struct wr_segment_pool *pool,
                                wr_router_find_lane *find_lane, void *ctx);

/* Offers what is left and frees it. May be NULL. */
void wr_router_free(struct wr_router *router, int64_t now_ns);

/* [configuring] Before a change: gates that are OFF turn COLD, so that calls wait for what comes. The groups
 * count as resolved all the same. */
void wr_router_reconsider(struct wr_registry *registry);

/* Takes over the groups from another router, or from none. keep_warm: those that were resolved are resolved
 * anew, so that a call goes its fast way, which a signal handler has to; the others turn COLD, and the next
 * value of each asks. */
void wr_router_adopt_groups(struct wr_router *router, struct wr_registry *registry, bool keep_warm);

/* A group's route; resolves it, and sets its gate, where that has not been done. */
struct wr_route *wr_router_route(struct wr_router *router, struct wr_group *group);

/* The route of a series, by its id; kept in a table, as long as there is memory for it. */
struct wr_route *wr_router_resolve_series(struct wr_router *router, const struct wr_registry *registry,
                                          uint32_t series);

static inline struct wr_route *wr_router_series_route(struct wr_router *router,
                                                      const struct wr_registry *registry, uint32_t series)
{
    if (series < router->by_series_room && router->by_series[series])
        return &router->routes[router->by_series[series] - 1];
    return wr_router_resolve_series(router, registry, series);
}

/* Offers everything, and gives up all segments. */
void wr_router_seal(struct wr_router *router, int64_t now_ns);

/* Offers all feeds what they have. */
void wr_router_offer(struct wr_router *router, int64_t now_ns);

/* Asks lanes that are full whether they still are, and sets gates accordingly. Answers when to ask again
 * (WR_NEVER: no need). */
int64_t wr_router_check(struct wr_router *router, int64_t now_ns);

#endif
