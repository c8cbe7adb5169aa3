/* router: which samples go to which lanes, for one configuration. [dispatcher's round] */
#ifndef WR_ROUTER_H
#define WR_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "dispatch/feed.h"
#include "dispatch/mapper.h"
#include "registry/registry.h"

struct wr_error;

/* Lanes of a route that get the same samples. */
struct wr_branch {
    struct wr_mapper *mapper; /* NULL: the samples as they are */
    struct wr_feed_lane **lanes;
    size_t lane_count;
    struct wr_feed **feeds;
    size_t feed_count;
    struct wr_feed_lane **summed; /* those of the lanes that take summaries and are in no feed */
    size_t summed_count;
};

/* A route of the configuration, resolved to lanes. */
struct wr_route {
    const char *group;           /* of the configuration's entry; NULL: the route of groups that have none */
    struct wr_feed_lane **lanes; /* of all branches */
    struct wr_mapper **mappers;  /* of the lanes */
    size_t lane_count;
    struct wr_branch plain; /* without a mapper */
    struct wr_branch *mapped;
    size_t mapped_count;
    struct wr_feed *only_feed; /* where all samples go, if that is one feed and nothing else; else NULL */
    bool only_sums; /* all samples are summed, as they are, and nothing else; with a journal in feeds */
    bool ranks;     /* some of its lanes want percentiles of histograms */
    uint32_t sync_lanes;
    enum wr_waiting waiting; /* who waits at the gates of its groups */
    bool is_full;            /* no lane had room at the last check */
    struct wr_group *groups; /* resolved to it so far */
};

struct wr_router {
    struct wr_config *config;
    struct wr_feed_lane *lanes;
    size_t lane_count;
    struct wr_feed *feeds;
    size_t feed_count;
    struct wr_route *routes; /* number 0: without lanes */
    size_t route_count;
    struct wr_mapper *mappers; /* one for each transform of the configuration that a route uses */
    size_t mapper_count;
    size_t waiting; /* of how many routes somebody waits */
    bool sums;      /* some lanes take summaries */
    bool journaled; /* all samples are kept in a journal */
    struct wr_segment_pool *pool;
    uint32_t *by_series; /* number of a series' route, plus 1; 0: not resolved yet */
    uint32_t by_series_room;
};

/* Returns a handler's lane, and its settings. NULL: the handler is left out. */
typedef struct wr_lane *wr_router_find_lane(void *ctx, const char *handler, struct wr_lane_settings *settings);

/* Makes the router of a configuration, of which it takes a reference. Mappers get the registry with
 * wr_router_adopt_groups. has_journal: one is in use already, and
 * stays, whatever the configuration says. Returns NULL with the error set, if out of memory or if the groups
 * reach more handlers than allowed. */
struct wr_router *wr_router_new(struct wr_config *config, struct wr_segment_pool *pool, bool has_journal,
                                wr_router_find_lane *find_lane, void *ctx, struct wr_error *error);

/* Offers what is left, and frees the router. May be NULL. */
void wr_router_free(struct wr_router *router, int64_t now_ns);

/* [configuring] Before a change: sets gates that are OFF to COLD, so that calls wait for the change, and has
 * calls that sum use the rings. The groups stay resolved. */
void wr_router_reconsider(struct wr_registry *registry);

/* Takes over the groups from another router, or from none. keep_warm: groups that were resolved are resolved
 * again, so that calls keep using the fast path, as a signal handler must. All other groups become COLD and are
 * resolved by their next value. */
void wr_router_adopt_groups(struct wr_router *router, struct wr_registry *registry, bool keep_warm);

/* A group's route. Resolves it and sets its gate, if that was not done yet. */
struct wr_route *wr_router_route(struct wr_router *router, struct wr_group *group);

/* The part of a route that a lane is in; NULL: in none. */
const struct wr_branch *wr_router_branch(const struct wr_route *route, const struct wr_feed_lane *lane);

/* The route of a series, by its id. Stored in a table, unless out of memory. */
struct wr_route *wr_router_resolve_series(struct wr_router *router, const struct wr_registry *registry,
                                          uint32_t series);

static inline struct wr_route *wr_router_series_route(struct wr_router *router,
                                                      const struct wr_registry *registry, uint32_t series)
{
    if (series < router->by_series_room && router->by_series[series])
        return &router->routes[router->by_series[series] - 1];
    return wr_router_resolve_series(router, registry, series);
}

/* Until the next wr_router_offer, some of what the route's lanes are offered comes from sources. These wait
 * while all lanes are full, so what they had added by then is kept; but a lane that is full beside one that has
 * room does with their values what its overflow policy says. */
static inline void wr_route_expect_sources(const struct wr_route *route)
{
    for (size_t i = 0; i < route->lane_count; i++)
        route->lanes[i]->keeps |= route->is_full || !route->lanes[i]->was_full;
}

/* Offers everything, and releases all segments. */
void wr_router_seal(struct wr_router *router, int64_t now_ns);

/* Has all feeds offer what they have. */
void wr_router_offer(struct wr_router *router, int64_t now_ns);

/* Whether the interval of a lane that takes summaries has ended. */
bool wr_router_has_due(const struct wr_router *router, int64_t now_ns);

/* Ends the intervals of lanes that take summaries: those that are due, lowering *next_ns to when the next one
 * is; all, but also_full: those of lanes with a full queue only if it is true, returning whether all were
 * ended; or those of lanes that have another interval in `next`, or none. */
void wr_router_end_due(struct wr_router *router, struct wr_registry *registry, int64_t now_ns,
                       int64_t *next_ns);
bool wr_router_end_all(struct wr_router *router, struct wr_registry *registry, bool also_full, int64_t now_ns);
void wr_router_end_changed(struct wr_router *router, struct wr_router *next, struct wr_registry *registry,
                           int64_t now_ns);

/* When it has replaced another one: totals of series that are new to a lane go on from those of lanes that have
 * had them. Not for lanes with objects in their routes, since these may leave out values. */
void wr_router_take_over_totals(struct wr_router *router, const struct wr_router *before,
                                const struct wr_registry *registry);

/* A series has ended: its last summary comes with the present interval. */
void wr_router_end_series(struct wr_router *router, uint32_t series);

/* Checks the lanes that are full, and sets gates accordingly. Returns when to check again; WR_NEVER: none is
 * full. */
int64_t wr_router_check(struct wr_router *router, int64_t now_ns);

#endif
