#include "dispatch/router.h"

#include <stdlib.h>
#include <string.h>

#include "text/common.h"
#include "producer/gate.h"

/* A segment has room for the largest batch of its lanes, and at least for the largest event. */
enum { SMALLEST_SEGMENT = 1024, LARGEST_SEGMENT = 65536 };

/* ---- Building -------------------------------------------------------------------------------- */

struct builder {
    struct wr_router *router;
    struct wr_lane_settings *settings; /* of router->lanes, by number */
    wr_router_find_lane *find_lane;
    void *ctx;
    size_t lane_room;
};

static size_t count_items(const struct wr_config *config)
{
    size_t items = 0;
    for (size_t i = 0; i < config->route_count; i++)
        items += config->routes[i].count;
    return items;
}

static bool allocate(struct builder *b)
{
    struct wr_router *router = b->router;
    b->lane_room = count_items(router->config);
    router->route_count = router->config->route_count + 1;
    router->lanes = calloc(b->lane_room + 1, sizeof *router->lanes);
    router->feeds = calloc(b->lane_room + 1, sizeof *router->feeds);
    router->routes = calloc(router->route_count, sizeof *router->routes);
    b->settings = calloc(b->lane_room + 1, sizeof *b->settings);
    if (!router->lanes || !router->feeds || !router->routes || !b->settings)
        return false;
    for (size_t i = 0; i < router->route_count; i++) {
        router->routes[i].lanes = calloc(b->lane_room + 1, sizeof *router->routes[i].lanes);
        router->routes[i].feeds = calloc(b->lane_room + 1, sizeof *router->routes[i].feeds);
        if (!router->routes[i].lanes || !router->routes[i].feeds)
            return false;
    }
    return true;
}

/* The router's entry of a lane, made at its first use. */
static struct wr_feed_lane *get_lane(struct builder *b, const char *handler)
{
    struct wr_router *router = b->router;
    struct wr_lane_settings settings;
    struct wr_lane *lane = b->find_lane(b->ctx, handler, &settings);
    for (size_t i = 0; i < router->lane_count; i++)
        if (router->lanes[i].lane == lane)
            return &router->lanes[i];
    b->settings[router->lane_count] = settings;
    struct wr_feed_lane *entry = &router->lanes[router->lane_count++];
    *entry = (struct wr_feed_lane){.lane = lane, .sync = settings.sync, .wanted = settings.spool_limit > 0};
    return entry;
}

static bool has_lane(const struct wr_route *route, const struct wr_feed_lane *lane)
{
    for (size_t i = 0; i < route->lane_count; i++)
        if (route->lanes[i] == lane)
            return true;
    return false;
}

static void add_lanes(struct builder *b, struct wr_route *route, const struct wr_config_route *from)
{
    for (size_t i = 0; from && i < from->count; i++) {
        if (strcmp(from->items[i], "inherit") == 0) {
            add_lanes(b, route, wr_config_find_route(b->router->config, from->group, true));
            continue;
        }
        struct wr_feed_lane *lane = get_lane(b, from->items[i]);
        if (has_lane(route, lane))
            continue;
        route->lanes[route->lane_count++] = lane;
        route->sync_lanes += lane->sync;
    }
}

static void build_routes(struct builder *b)
{
    const struct wr_config *config = b->router->config;
    for (size_t i = 0; i < config->route_count; i++) {
        b->router->routes[i + 1].group = config->routes[i].group;
        add_lanes(b, &b->router->routes[i + 1], &config->routes[i]);
    }
}

static bool is_in_same_routes(const struct wr_router *router, const struct wr_feed_lane *a,
                              const struct wr_feed_lane *b)
{
    for (size_t i = 0; i < router->route_count; i++)
        if (has_lane(&router->routes[i], a) != has_lane(&router->routes[i], b))
            return false;
    return true;
}

static uint32_t segment_room(const struct wr_lane_settings *settings)
{
    uint64_t room = settings->batch;
    uint64_t queue = settings->queue_bytes / sizeof(weir_sample);
    if (room > queue)
        room = queue;
    if (room > LARGEST_SEGMENT)
        room = LARGEST_SEGMENT;
    return room < SMALLEST_SEGMENT ? SMALLEST_SEGMENT : (uint32_t)room;
}

static bool build_feed(struct builder *b, struct wr_feed *feed, struct wr_feed_lane *first,
                       struct wr_segment_pool *pool, char *done)
{
    struct wr_router *router = b->router;
    feed->pool = pool;
    feed->lanes = calloc(router->lane_count, sizeof *feed->lanes);
    for (size_t i = (size_t)(first - router->lanes); feed->lanes && i < router->lane_count; i++) {
        if (done[i] || !is_in_same_routes(router, first, &router->lanes[i]))
            continue;
        done[i] = 1;
        feed->lanes[feed->lane_count++] = &router->lanes[i];
        uint32_t room = segment_room(&b->settings[i]);
        if (feed->segment_room < room)
            feed->segment_room = room;
    }
    return feed->lanes;
}

static bool build_feeds(struct builder *b, struct wr_segment_pool *pool)
{
    struct wr_router *router = b->router;
    char *done = calloc(router->lane_count + 1, 1);
    bool built = done;
    for (size_t i = 0; built && i < router->lane_count; i++)
        if (!done[i])
            built = build_feed(b, &router->feeds[router->feed_count++], &router->lanes[i], pool, done);
    free(done);
    return built;
}

static void add_feeds_to_routes(struct wr_router *router)
{
    for (size_t i = 0; i < router->route_count; i++)
        for (size_t j = 0; j < router->feed_count; j++)
            if (has_lane(&router->routes[i], router->feeds[j].lanes[0]))
                router->routes[i].feeds[router->routes[i].feed_count++] = &router->feeds[j];
}

struct wr_router *wr_router_new(struct wr_config *config, struct wr_segment_pool *pool,
                                wr_router_find_lane *find_lane, void *ctx)
{
    struct wr_router *router = calloc(1, sizeof *router);
    if (!router)
        return NULL;
    struct builder builder = {.router = router, .find_lane = find_lane, .ctx = ctx};
    wr_config_hold(config);
    router->config = config;
    bool built = allocate(&builder);
    if (built) {
        build_routes(&builder);
        built = build_feeds(&builder, pool);
    }
    free(builder.settings);
    if (built) {
        add_feeds_to_routes(router);
        return router;
    }
    wr_router_free(router, 0);
    return NULL;
}

void wr_router_free(struct wr_router *router, int64_t now_ns)
{
    if (!router)
        return;
    for (size_t i = 0; i < router->feed_count; i++) {
        wr_feed_seal(&router->feeds[i], now_ns);
        free(router->feeds[i].lanes);
    }
    for (size_t i = 0; router->routes && i < router->route_count; i++) {
        free(router->routes[i].lanes);
        free(router->routes[i].feeds);
    }
    free(router->lanes);
    free(router->feeds);
    free(router->routes);
    free(router->by_series);
    wr_config_drop(router->config);
    free(router);
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static enum wr_gate gate_of(const struct wr_route *route)
{
    if (route->lane_count == 0)
        return WR_GATE_OFF;
    if (route->waiting)
        return WR_GATE_WAIT;
    return route->sync_lanes ? WR_GATE_SYNC : WR_GATE_OPEN;
}

static size_t find_route(const struct wr_router *router, const struct wr_group *group)
{
    const struct wr_config_route *route = wr_config_find_route(router->config, group->name, false);
    return route ? (size_t)(route - router->config->routes) + 1 : 0;
}

struct wr_route *wr_router_route(struct wr_router *router, struct wr_group *group)
{
    if (group->route)
        return &router->routes[group->route - 1];
    size_t number = find_route(router, group);
    struct wr_route *route = &router->routes[number];
    group->route = (uint32_t)number + 1;
    group->route_next = route->groups;
    route->groups = group;
    wr_gate_set(group, gate_of(route));
    return route;
}

void wr_router_reconsider(struct wr_registry *registry)
{
    struct wr_group *group = atomic_load_explicit(&registry->last_group, memory_order_acquire);
    for (; group; group = group->next)
        if (wr_gate_read(group) == WR_GATE_OFF)
            wr_gate_set(group, WR_GATE_COLD);
}

void wr_router_adopt_groups(struct wr_router *router, struct wr_registry *registry, bool keep_warm)
{
    /* acquire: pairs with the release store in the thread that made the group */
    struct wr_group *group = atomic_load_explicit(&registry->last_group, memory_order_acquire);
    for (; group; group = group->next) {
        bool is_warm = group->route != 0;
        group->route = 0;
        group->route_next = NULL;
        if (keep_warm && is_warm)
            wr_router_route(router, group);
        else
            wr_gate_set(group, WR_GATE_COLD);
    }
}

static bool has_series_room(struct wr_router *router, uint32_t series)
{
    if (series < router->by_series_room)
        return true;
    uint32_t room = router->by_series_room ? router->by_series_room : 64;
    while (room <= series)
        room *= 2;
    uint32_t *by_series = realloc(router->by_series, room * sizeof *by_series);
    if (!by_series)
        return false;
    memset(by_series + router->by_series_room, 0, (room - router->by_series_room) * sizeof *by_series);
    router->by_series = by_series;
    router->by_series_room = room;
    return true;
}

struct wr_route *wr_router_resolve_series(struct wr_router *router, const struct wr_registry *registry,
                                          uint32_t series)
{
    struct wr_group *group = wr_registry_series(registry, series)->stream->group;
    struct wr_route *route = wr_router_route(router, group);
    if (has_series_room(router, series))
        router->by_series[series] = group->route;
    return route;
}

/* ---- Each round ------------------------------------------------------------------------------ */

void wr_router_offer(struct wr_router *router, int64_t now_ns)
{
    for (size_t i = 0; i < router->feed_count; i++)
        wr_feed_offer(&router->feeds[i], (struct wr_ticket){0}, now_ns);
}

void wr_router_seal(struct wr_router *router, int64_t now_ns)
{
    for (size_t i = 0; i < router->feed_count; i++)
        wr_feed_seal(&router->feeds[i], now_ns);
}

static bool must_wait(const struct wr_route *route)
{
    for (size_t i = 0; i < route->lane_count; i++)
        if (route->lanes[i]->full)
            return true;
    return false;
}

static void set_gates(struct wr_route *route)
{
    for (struct wr_group *group = route->groups; group; group = group->route_next)
        wr_gate_set(group, gate_of(route));
}

int64_t wr_router_check(struct wr_router *router, int64_t now_ns)
{
    int64_t next_ns = WR_NEVER;
    for (size_t i = 0; i < router->lane_count; i++)
        if (router->lanes[i].full)
            router->lanes[i].full = wr_lane_check(router->lanes[i].lane, now_ns, &next_ns);
    for (size_t i = 0; i < router->route_count; i++) {
        struct wr_route *route = &router->routes[i];
        bool waiting = must_wait(route);
        if (waiting == route->waiting)
            continue;
        route->waiting = waiting;
        set_gates(route);
    }
    return next_ns;
}
