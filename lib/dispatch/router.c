#include "dispatch/router.h"

#include <stdlib.h>
#include <string.h>

#include "text/common.h"
#include "os/pages.h"
#include "text/error.h"
#include "text/name_index.h"
#include "producer/gate.h"
#include "registry/series.h"

/* A segment has room for the largest batch of its lanes, and at least for the largest event. */
enum { SMALLEST_SEGMENT = 1024, LARGEST_SEGMENT = 65536 };

/* ---- Building -------------------------------------------------------------------------------- */

/* Each step costs as much as the routes have lanes together, which is bounded: no step compares routes with
 * routes or lanes with lanes. */
struct builder {
    struct wr_router *router;
    struct wr_lane_settings *settings; /* of router->lanes, by number */
    wr_router_find_lane *find_lane;
    void *ctx;
    struct wr_name_index names;  /* of router->lanes */
    struct wr_feed_lane **found; /* the lanes of the route that is being built */
    struct wr_mapper **mappers;  /* of the lanes found */
    uint32_t *last_route;        /* by a lane's number: the last route that it was put into, plus 1 */
    uint32_t *last_own;          /* the same for routes that name it themselves */
    struct wr_mapper **own;      /* by a lane's number: what that route does with its samples */
    size_t reached;              /* lanes of all routes */
    struct wr_error *error;
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
    size_t lane_room = count_items(router->config) + 1;
    router->route_count = router->config->route_count + 1;
    router->lanes = calloc(lane_room, sizeof *router->lanes);
    router->feeds = calloc(lane_room, sizeof *router->feeds);
    router->routes = calloc(router->route_count, sizeof *router->routes);
    b->settings = calloc(lane_room, sizeof *b->settings);
    b->found = calloc(lane_room, sizeof(struct wr_feed_lane *));
    b->mappers = calloc(lane_room, sizeof(struct wr_mapper *));
    b->last_route = calloc(lane_room, sizeof *b->last_route);
    b->last_own = calloc(lane_room, sizeof *b->last_own);
    b->own = calloc(lane_room, sizeof(struct wr_mapper *));
    return router->lanes && router->feeds && router->routes && b->settings && b->found && b->mappers &&
           b->last_route && b->last_own && b->own;
}

/* The router's entry of a lane, made at its first use. *entry becomes NULL if the handler is left out. Returns
 * false if out of memory. */
static bool get_lane(struct builder *b, const char *handler, struct wr_feed_lane **entry)
{
    struct wr_router *router = b->router;
    struct wr_lane_settings settings;
    *entry = NULL;
    if (!router->lanes || !b->settings) /* there is room for each handler of the configuration */
        return false;
    size_t number = wr_name_index_find(&b->names, handler, strlen(handler));
    *entry = number == SIZE_MAX ? NULL : &router->lanes[number];
    if (*entry)
        return true;
    struct wr_lane *lane = b->find_lane(b->ctx, handler, &settings);
    if (!lane)
        return true;
    if (!wr_name_index_add(&b->names, handler, router->lane_count))
        return false;
    b->settings[router->lane_count] = settings;
    *entry = &router->lanes[router->lane_count++];
    **entry = (struct wr_feed_lane){
        .lane = lane, .sync = settings.sync, .wanted = settings.spool_limit || settings.opens_early};
    (*entry)->summing = (struct wr_summing){
        .every_ns = settings.aggregate_ns,
        .parts = settings.aggregate_series,
        .percentiles = settings.percentiles,
        .ranks = settings.ranks,
        .expiry_ns = router->config->settings.expiry_ns,
    };
    (*entry)->summer = settings.aggregate_ns ? wr_lane_summer(lane) : NULL;
    router->sums |= (*entry)->summer != NULL;
    return true;
}

/* ---- Mappers --------------------------------------------------------------------------------- */

static int compare_transforms(const void *a, const void *b)
{
    uintptr_t first = (uintptr_t)((const struct wr_mapper *)a)->transform;
    uintptr_t second = (uintptr_t)((const struct wr_mapper *)b)->transform;
    return first < second ? -1 : first > second;
}

static const struct wr_transform *transform_of(const struct wr_config_route *from, size_t item)
{
    return from->transforms ? from->transforms[item] : NULL;
}

static struct wr_mapper *find_mapper(const struct wr_router *router, const struct wr_config_route *from,
                                     size_t item)
{
    const struct wr_mapper key = {.transform = transform_of(from, item)};
    return key.transform && router->mapper_count
               ? bsearch(&key, router->mappers, router->mapper_count, sizeof key, compare_transforms)
               : NULL;
}

static size_t count_transforms(const struct wr_config *config)
{
    size_t count = 0;
    for (size_t i = 0; i < config->route_count; i++)
        for (size_t j = 0; j < config->routes[i].count; j++)
            count += transform_of(&config->routes[i], j) != NULL;
    return count;
}

/* One for each transform, sorted by their addresses. */
static bool make_mappers(struct wr_router *router)
{
    const struct wr_config *config = router->config;
    size_t used = count_transforms(config), count = 0;
    router->mappers = used ? calloc(used, sizeof *router->mappers) : NULL;
    if (used && !router->mappers)
        return false;
    for (size_t i = 0; used && i < config->route_count; i++)
        for (size_t j = 0; j < config->routes[i].count; j++)
            if (transform_of(&config->routes[i], j))
                wr_mapper_init(&router->mappers[count++], transform_of(&config->routes[i], j));
    if (used)
        qsort(router->mappers, used, sizeof *router->mappers, compare_transforms);
    for (size_t i = 0; i < used; i++)
        if (!router->mapper_count ||
            router->mappers[router->mapper_count - 1].transform != router->mappers[i].transform)
            router->mappers[router->mapper_count++] = router->mappers[i];
    return true;
}

/* ---- Routes ---------------------------------------------------------------------------------- */

/* Adds a lane to b->found, unless it is there. What the route does itself with the samples of a lane takes
 * precedence over what it inherits. */
static void add_lane(struct builder *b, struct wr_route *route, struct wr_feed_lane *lane,
                     struct wr_mapper *inherited)
{
    uint32_t number = (uint32_t)(route - b->router->routes) + 1;
    size_t lane_index = (size_t)(lane - b->router->lanes);
    if (b->last_route[lane_index] == number)
        return;
    b->last_route[lane_index] = number;
    b->mappers[route->lane_count] = b->last_own[lane_index] == number ? b->own[lane_index] : inherited;
    b->found[route->lane_count++] = lane;
    route->sync_lanes += lane->sync;
}

static bool is_inherit(const struct wr_config_route *from, size_t item)
{
    return strcmp(from->items[item], "inherit") == 0;
}

/* Notes which lanes the route names itself, and what it does with their samples. */
static bool note_own(struct builder *b, const struct wr_route *route, const struct wr_config_route *from)
{
    struct wr_feed_lane *lane;
    for (size_t i = 0; i < from->count; i++) {
        if (is_inherit(from, i))
            continue;
        if (!get_lane(b, from->items[i], &lane))
            return wr_error_no_memory(b->error, NULL);
        if (!lane)
            continue;
        b->last_own[lane - b->router->lanes] = (uint32_t)(route - b->router->routes) + 1;
        b->own[lane - b->router->lanes] = find_mapper(b->router, from, i);
    }
    return true;
}

static bool add_lanes(struct builder *b, struct wr_route *route, const struct wr_config_route *from,
                      const struct wr_route *parent)
{
    struct wr_feed_lane *lane;
    for (size_t i = 0; i < from->count; i++) {
        if (is_inherit(from, i)) {
            for (size_t j = 0; parent && j < parent->lane_count; j++)
                add_lane(b, route, parent->lanes[j], parent->mappers[j]);
            continue;
        }
        if (!get_lane(b, from->items[i], &lane))
            return wr_error_no_memory(b->error, NULL);
        if (lane)
            add_lane(b, route, lane, NULL);
    }
    return true;
}

static bool refuse_reached(const struct builder *b, const struct wr_config_route *from)
{
    static const char problem[] =
        "with this route, all groups together reach too many handlers, inherited ones included; at most "
        "1,000,000 are allowed";
    if (from->nodes)
        wr_node_error(from->nodes[0], b->error, "%s", problem);
    else
        wr_error_set(b->error, WEIR_ERR_CONFIG, "group \"%s\": %s", from->group, problem);
    return false;
}

/* ---- Branches -------------------------------------------------------------------------------- */

/* The branch of a lane; a new one gets the next number. */
static struct wr_branch *branch_of(struct wr_route *route, struct wr_mapper *mapper, uint32_t route_number)
{
    if (!mapper)
        return &route->plain;
    if (mapper->seen_route != route_number) {
        mapper->seen_route = route_number;
        mapper->seen_branch = (uint32_t)route->mapped_count++;
        route->mapped[mapper->seen_branch].mapper = mapper;
    }
    return &route->mapped[mapper->seen_branch];
}

static bool has_mapper(const struct wr_route *route)
{
    for (size_t i = 0; i < route->lane_count; i++)
        if (route->mappers[i])
            return true;
    return false;
}

static bool allocate_branch(struct wr_branch *branch)
{
    size_t room = branch->lane_count + 1;
    branch->lanes = calloc(room, sizeof(struct wr_feed_lane *));
    branch->feeds = calloc(room, sizeof(struct wr_feed *));
    branch->summed = calloc(room, sizeof(struct wr_feed_lane *));
    branch->lane_count = 0;
    return branch->lanes && branch->feeds && branch->summed;
}

/* Returns false if out of memory. number: of the route, plus 1. */
static bool make_branches(struct wr_route *route, uint32_t number)
{
    if (has_mapper(route)) {
        route->mapped = calloc(route->lane_count, sizeof *route->mapped);
        if (!route->mapped)
            return false;
    }
    for (size_t i = 0; i < route->lane_count; i++)
        branch_of(route, route->mappers[i], number)->lane_count++;
    bool made = allocate_branch(&route->plain);
    for (size_t i = 0; i < route->mapped_count; i++)
        made &= allocate_branch(&route->mapped[i]);
    for (size_t i = 0; made && i < route->lane_count; i++) {
        struct wr_branch *branch = branch_of(route, route->mappers[i], number);
        branch->lanes[branch->lane_count++] = route->lanes[i];
    }
    return made;
}

static bool keep_found(struct builder *b, struct wr_route *route, const struct wr_config_route *from)
{
    if (b->reached + route->lane_count > WR_CONFIG_REACHED_MAX) {
        route->lane_count = 0;
        return refuse_reached(b, from);
    }
    b->reached += route->lane_count;
    route->lanes = calloc(route->lane_count + 1, sizeof(struct wr_feed_lane *));
    route->mappers = calloc(route->lane_count + 1, sizeof(struct wr_mapper *));
    if (!route->lanes || !route->mappers)
        return wr_error_no_memory(b->error, NULL);
    memcpy(route->lanes, b->found, route->lane_count * sizeof(struct wr_feed_lane *));
    memcpy(route->mappers, b->mappers, route->lane_count * sizeof(struct wr_mapper *));
    return make_branches(route, (uint32_t)(route - b->router->routes) + 1) ||
           wr_error_no_memory(b->error, NULL);
}

static bool inherits(const struct wr_config_route *from)
{
    for (size_t i = 0; i < from->count; i++)
        if (is_inherit(from, i))
            return true;
    return false;
}

/* The parent's route is built first. A group has at most as many ancestors as its name has parts. */
static bool build_route(struct builder *b, const struct wr_config_route *from)
{
    const struct wr_config *config = b->router->config;
    struct wr_route *route = &b->router->routes[from - config->routes + 1], *parent = NULL;
    if (route->lanes)
        return true;
    const struct wr_config_route *above =
        inherits(from) ? wr_config_find_route(config, from->group, true) : NULL;
    if (above && !build_route(b, above))
        return false;
    if (above)
        parent = &b->router->routes[above - config->routes + 1];
    route->group = from->group;
    return note_own(b, route, from) && add_lanes(b, route, from, parent) && keep_found(b, route, from);
}

static bool build_routes(struct builder *b)
{
    const struct wr_config *config = b->router->config;
    for (size_t i = 0; i < config->route_count; i++)
        if (!build_route(b, &config->routes[i]))
            return false;
    return true;
}

/* ---- Feeds ----------------------------------------------------------------------------------- */

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

/* Lanes that are in exactly the same branches of routes are of one class. */
struct classes {
    uint32_t *lane_classes;
    uint32_t *next;   /* by a class: that of its lanes that are in the present branch too */
    uint32_t *branch; /* which branch that was, from 1 */
    uint32_t count, branches;
};

/* A branch splits every class of which it has lanes in two: those in it, and the others. */
static void split_by(const struct wr_router *router, const struct wr_branch *branch, struct classes *classes)
{
    uint32_t number = ++classes->branches;
    for (size_t i = 0; i < branch->lane_count; i++) {
        uint32_t *class = &classes->lane_classes[branch->lanes[i] - router->lanes];
        if (classes->branch[*class] != number) {
            classes->branch[*class] = number;
            classes->next[*class] = classes->count++;
        }
        *class = classes->next[*class];
    }
}

/* Lanes that sum are in no class with others: what was taken of cells comes to them in another form. */
static void split_classes(const struct wr_router *router, struct classes *classes)
{
    classes->count = 2;
    for (size_t i = 0; i < router->lane_count; i++)
        classes->lane_classes[i] = router->lanes[i].summer != NULL;
    for (size_t i = 0; i < router->route_count; i++) {
        const struct wr_route *route = &router->routes[i];
        split_by(router, &route->plain, classes);
        for (size_t j = 0; j < route->mapped_count; j++)
            split_by(router, &route->mapped[j], classes);
    }
}

/* A lane that takes summaries is in a feed only for the journal, which keeps its samples. Otherwise they are
 * summed as they are taken from the rings. */
static bool has_feed(const struct wr_router *router, const struct wr_feed_lane *lane)
{
    return !lane->summer || router->journaled;
}

/* The feeds, in the order of their first lanes; sets feed->lane_count. `class_feeds` becomes the number of a
 * class's feed, plus 1. */
static void count_feeds(struct wr_router *router, const struct classes *classes, uint32_t *class_feeds)
{
    for (size_t i = 0; i < router->lane_count; i++) {
        if (!has_feed(router, &router->lanes[i]))
            continue;
        uint32_t *feed = &class_feeds[classes->lane_classes[i]];
        if (!*feed)
            *feed = (uint32_t)++router->feed_count;
        router->feeds[*feed - 1].lane_count++;
    }
}

static bool fill_feeds(struct builder *b, const struct classes *classes, const uint32_t *class_feeds,
                       struct wr_segment_pool *pool)
{
    struct wr_router *router = b->router;
    bool failed = false;
    for (size_t i = 0; i < router->feed_count; i++) {
        struct wr_feed *feed = &router->feeds[i];
        feed->pool = pool;
        feed->lanes = calloc(feed->lane_count, sizeof(struct wr_feed_lane *));
        feed->lane_count = 0;
        failed |= !feed->lanes;
    }
    if (failed)
        return wr_error_no_memory(b->error, NULL);
    for (size_t i = 0; i < router->lane_count; i++) {
        if (!has_feed(router, &router->lanes[i]))
            continue;
        struct wr_feed *feed = &router->feeds[class_feeds[classes->lane_classes[i]] - 1];
        uint32_t room = segment_room(&b->settings[i]);
        feed->lanes[feed->lane_count++] = &router->lanes[i];
        router->lanes[i].feed = feed;
        feed->sums = router->lanes[i].summer;
        if (feed->segment_room < room)
            feed->segment_room = room;
    }
    return true;
}

static bool build_feeds(struct builder *b, struct wr_segment_pool *pool)
{
    size_t classes_max = b->reached + 3;
    uint32_t *words = calloc(3 * classes_max + b->router->lane_count, sizeof *words);
    if (!words)
        return wr_error_no_memory(b->error, NULL);
    struct classes classes = {
        .next = words, .branch = words + classes_max, .lane_classes = words + 3 * classes_max};
    split_classes(b->router, &classes);
    uint32_t *class_feeds = words + 2 * classes_max;
    count_feeds(b->router, &classes, class_feeds);
    bool filled = fill_feeds(b, &classes, class_feeds, pool);
    free(words);
    return filled;
}

/* A feed's first lane is in a branch if its others are, and only once. */
static void add_feeds_to_branch(struct wr_branch *branch)
{
    for (size_t i = 0; i < branch->lane_count; i++) {
        struct wr_feed_lane *lane = branch->lanes[i];
        if (!lane->feed)
            branch->summed[branch->summed_count++] = lane;
        else if (lane->feed->lanes[0] == lane)
            branch->feeds[branch->feed_count++] = lane->feed;
    }
}

static void add_feeds_to_routes(struct wr_router *router)
{
    for (size_t i = 0; i < router->route_count; i++) {
        struct wr_route *route = &router->routes[i];
        struct wr_branch *plain = &route->plain;
        add_feeds_to_branch(plain);
        for (size_t j = 0; j < route->mapped_count; j++)
            add_feeds_to_branch(&route->mapped[j]);
        bool is_plain = !route->mapped_count;
        route->only_feed = is_plain && plain->feed_count == 1 && !plain->summed_count ? plain->feeds[0] : NULL;
        route->only_sums = is_plain && plain->lane_count;
        for (size_t j = 0; j < plain->lane_count; j++) {
            route->only_sums &= plain->lanes[j]->summer != NULL;
            route->ranks |= plain->lanes[j]->summing.ranks;
        }
    }
}

/* ---- The router ------------------------------------------------------------------------------ */

static bool build(struct builder *b, struct wr_segment_pool *pool)
{
    bool built = allocate(b) && make_mappers(b->router) ? build_routes(b) && build_feeds(b, pool)
                                                        : wr_error_no_memory(b->error, NULL);
    wr_name_index_fini(&b->names);
    free(b->settings);
    free(b->found);
    free(b->mappers);
    free(b->last_route);
    free(b->last_own);
    free(b->own);
    if (built)
        add_feeds_to_routes(b->router);
    return built;
}

struct wr_router *wr_router_new(struct wr_config *config, struct wr_segment_pool *pool, bool has_journal,
                                wr_router_find_lane *find_lane, void *ctx, struct wr_error *error)
{
    struct wr_router *router = calloc(1, sizeof *router);
    if (!router) {
        wr_error_no_memory(error, NULL);
        return NULL;
    }
    struct builder builder = {.router = router, .find_lane = find_lane, .ctx = ctx, .error = error};
    wr_config_hold(config);
    router->config = config;
    router->journaled = has_journal || config->settings.journal;
    router->pool = pool;
    if (build(&builder, pool))
        return router;
    wr_router_free(router, 0);
    return NULL;
}

static void free_branch(struct wr_branch *branch)
{
    free(branch->lanes);
    free(branch->feeds);
    free(branch->summed);
}

static void free_route(struct wr_route *route)
{
    free(route->lanes);
    free(route->mappers);
    free_branch(&route->plain);
    for (size_t i = 0; i < route->mapped_count; i++)
        free_branch(&route->mapped[i]);
    free(route->mapped);
}

void wr_router_free(struct wr_router *router, int64_t now_ns)
{
    if (!router)
        return;
    for (size_t i = 0; i < router->feed_count; i++) {
        wr_feed_seal(&router->feeds[i], now_ns);
        free(router->feeds[i].lanes);
    }
    for (size_t i = 0; router->routes && i < router->route_count; i++)
        free_route(&router->routes[i]);
    for (size_t i = 0; i < router->mapper_count; i++)
        wr_mapper_fini(&router->mappers[i]);
    free(router->mappers);
    free(router->lanes);
    free(router->feeds);
    free(router->routes);
    wr_pages_put(router->by_series);
    wr_config_drop(router->config);
    free(router);
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static enum wr_gate gate_of(const struct wr_route *route)
{
    if (route->lane_count == 0)
        return WR_GATE_OFF;
    if (route->waiting == WR_ALL_WAIT)
        return WR_GATE_WAIT;
    if (route->only_sums)
        return route->ranks ? WR_GATE_OPEN_RANKED : WR_GATE_OPEN_UNTIMED;
    return route->sync_lanes ? WR_GATE_SYNC : WR_GATE_OPEN;
}

static size_t find_route(const struct wr_router *router, const struct wr_group *group)
{
    const struct wr_config_route *route = wr_config_find_route(router->config, group->name, false);
    return route ? (size_t)(route - router->config->routes) + 1 : 0;
}

static void set_gate(const struct wr_route *route, struct wr_group *group)
{
    wr_gate_hold(group, route->waiting != WR_NOBODY_WAITS);
    wr_gate_set(group, gate_of(route));
}

static void set_cold(struct wr_group *group)
{
    wr_gate_hold(group, false);
    wr_gate_set(group, WR_GATE_COLD);
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
    set_gate(route, group);
    return route;
}

void wr_router_reconsider(struct wr_registry *registry)
{
    struct wr_group *group = atomic_load_explicit(&registry->last_group, memory_order_acquire);
    for (; group; group = group->next)
        if (wr_gate_read(group) == WR_GATE_OFF)
            wr_gate_set(group, WR_GATE_COLD);
        else if (wr_gate_read(group) == WR_GATE_OPEN_UNTIMED || wr_gate_read(group) == WR_GATE_OPEN_RANKED)
            wr_gate_set(group, WR_GATE_OPEN); /* so that cells get no more until it is known who sums */
}

void wr_router_adopt_groups(struct wr_router *router, struct wr_registry *registry, bool keep_warm)
{
    /* acquire: pairs with the release store in the thread that made the group */
    struct wr_group *group = atomic_load_explicit(&registry->last_group, memory_order_acquire);
    for (size_t i = 0; i < router->mapper_count; i++)
        router->mappers[i].registry = registry;
    for (; group; group = group->next) {
        bool is_warm = group->route != 0;
        group->route = 0;
        group->route_next = NULL;
        if (keep_warm && is_warm)
            wr_router_route(router, group);
        else
            set_cold(group);
    }
}

const struct wr_branch *wr_router_branch(const struct wr_route *route, const struct wr_feed_lane *lane)
{
    for (size_t i = 0; i < route->lane_count; i++) {
        if (route->lanes[i] != lane)
            continue;
        for (size_t j = 0; j < route->mapped_count; j++)
            if (route->mapped[j].mapper == route->mappers[i])
                return &route->mapped[j];
        return &route->plain;
    }
    return NULL;
}

struct wr_route *wr_router_resolve_series(struct wr_router *router, const struct wr_registry *registry,
                                          uint32_t series)
{
    struct wr_group *group = wr_registry_series(registry, series)->stream->group;
    struct wr_route *route = wr_router_route(router, group);
    if (WR_PAGES_HAS_ROOM(&router->by_series, &router->by_series_room, series + 1))
        router->by_series[series] = group->route;
    return route;
}

/* ---- Summaries ------------------------------------------------------------------------------- */

static void count_sums(struct wr_router *router, int64_t now_ns)
{
    for (size_t i = 0; router->sums && i < router->lane_count; i++)
        wr_feed_count_sums(&router->lanes[i], now_ns);
}

/* A counter or histogram is there before its first value, and as long as its group's route leads here. */
static void adopt_declared(struct wr_router *router, struct wr_feed_lane *lane,
                           const struct wr_registry *registry)
{
    uint32_t id;
    while (wr_summer_next_declared(lane->summer, &id)) {
        const struct wr_branch *branch = wr_router_branch(wr_router_series_route(router, registry, id), lane);
        bool routed = branch && (!branch->mapper || wr_mapper_series(branch->mapper, id, &id));
        wr_summer_declare(lane->summer, &lane->summing, id, routed);
    }
}

static bool is_used(const struct wr_router *router, uint32_t series, int64_t now_ns, int64_t within_ns)
{
    for (size_t i = 0; i < router->lane_count; i++)
        if (router->lanes[i].summer && wr_summer_is_used(router->lanes[i].summer, series, now_ns, within_ns))
            return true;
    return false;
}

/* What other lanes have had values of goes on, as an object in this one's route may leave some out. */
static void end_expired(struct wr_router *router, const struct wr_feed_lane *lane, struct wr_registry *registry,
                        int64_t now_ns)
{
    uint32_t place = 0, series;
    while (wr_summer_next_expired(lane->summer, &lane->summing, &place, now_ns, &series)) {
        if (is_used(router, series, now_ns, lane->summing.expiry_ns))
            continue;
        wr_series_end(registry, wr_registry_series(registry, series));
        wr_router_end_series(router, series);
    }
}

static void end_interval(struct wr_router *router, struct wr_feed_lane *lane, struct wr_registry *registry,
                         int64_t now_ns, bool early)
{
    adopt_declared(router, lane, registry);
    struct wr_segment *segment = wr_summer_end(lane->summer, &lane->summing, router->pool, now_ns, early);
    end_expired(router, lane, registry, now_ns);
    if (!segment)
        return;
    wr_lane_offer_summaries(lane->lane, segment, now_ns);
    wr_segment_drop(segment);
    lane->wanted = true;
}

bool wr_router_has_due(const struct wr_router *router, int64_t now_ns)
{
    for (size_t i = 0; router->sums && i < router->lane_count; i++)
        if (router->lanes[i].summer && wr_summer_due(router->lanes[i].summer) <= now_ns)
            return true;
    return false;
}

void wr_router_end_due(struct wr_router *router, struct wr_registry *registry, int64_t now_ns, int64_t *next_ns)
{
    for (size_t i = 0; router->sums && i < router->lane_count; i++) {
        struct wr_feed_lane *lane = &router->lanes[i];
        if (!lane->summer)
            continue;
        bool due = wr_summer_is_due(lane->summer, &lane->summing, now_ns);
        if ((due || wr_summer_ends_early(lane->summer)) && wr_lane_takes_summaries(lane->lane))
            end_interval(router, lane, registry, now_ns, !due);
        if (due)
            wr_summer_postpone(lane->summer, now_ns);
        int64_t due_ns = wr_summer_due(lane->summer);
        *next_ns = due_ns < *next_ns ? due_ns : *next_ns;
    }
}

/* What each lane's interval is from now on; 0: the lane takes no summaries any more. */
static void plan_intervals(struct wr_router *router, struct wr_router *next)
{
    for (size_t i = 0; i < router->lane_count; i++)
        if (router->lanes[i].summer)
            wr_summer_plan(router->lanes[i].summer, 0);
    for (size_t i = 0; next && i < next->lane_count; i++)
        if (next->lanes[i].summer)
            wr_summer_plan(next->lanes[i].summer, next->lanes[i].summing.every_ns);
}

bool wr_router_end_all(struct wr_router *router, struct wr_registry *registry, bool also_full, int64_t now_ns)
{
    bool ended = true;
    wr_router_offer(router, now_ns);
    for (size_t i = 0; router->sums && i < router->lane_count; i++) {
        struct wr_feed_lane *lane = &router->lanes[i];
        if (!lane->summer)
            continue;
        bool takes = also_full || wr_lane_takes_summaries(lane->lane);
        if (takes)
            end_interval(router, lane, registry, now_ns, true);
        ended &= takes;
    }
    return ended;
}

void wr_router_end_changed(struct wr_router *router, struct wr_router *next, struct wr_registry *registry,
                           int64_t now_ns)
{
    wr_router_offer(router, now_ns);
    plan_intervals(router, next);
    for (size_t i = 0; router->sums && i < router->lane_count; i++) {
        struct wr_feed_lane *lane = &router->lanes[i];
        if (!lane->summer)
            continue;
        if (wr_summer_changes(lane->summer, &lane->summing))
            end_interval(router, lane, registry, now_ns, true);
        wr_summer_follow_plan(lane->summer);
    }
}

/* Whether an object in a route makes other values of the lane's than the program has added. */
static bool is_mapped(const struct wr_router *router, const struct wr_feed_lane *lane)
{
    for (size_t i = 0; i < router->route_count; i++) {
        const struct wr_branch *branch = wr_router_branch(&router->routes[i], lane);
        if (branch && branch->mapper)
            return true;
    }
    return false;
}

static void take_over_from(struct wr_router *router, const struct wr_registry *registry,
                           struct wr_feed_lane *lane, const struct wr_summer *from)
{
    uint32_t place = 0, series;
    while (wr_summer_next_total(from, &place, &series)) {
        const struct wr_route *route = wr_router_series_route(router, registry, series);
        if (wr_router_branch(route, lane) == &route->plain)
            wr_summer_take_over(lane->summer, &lane->summing, from, series);
    }
}

void wr_router_take_over_totals(struct wr_router *router, const struct wr_router *before,
                                const struct wr_registry *registry)
{
    for (size_t i = 0; router->sums && i < router->lane_count; i++) {
        struct wr_feed_lane *lane = &router->lanes[i];
        if (lane->summer)
            wr_summer_return(lane->summer);
        if (!lane->summer || is_mapped(router, lane))
            continue;
        for (size_t j = 0; j < before->lane_count; j++) {
            const struct wr_feed_lane *other = &before->lanes[j];
            if (other->summer && other->summer != lane->summer && !is_mapped(before, other))
                take_over_from(router, registry, lane, other->summer);
        }
    }
}

void wr_router_end_series(struct wr_router *router, uint32_t series)
{
    for (size_t i = 0; router->sums && i < router->lane_count; i++)
        if (router->lanes[i].summer)
            wr_summer_end_series(router->lanes[i].summer, series);
}

/* ---- Each round ------------------------------------------------------------------------------ */

void wr_router_offer(struct wr_router *router, int64_t now_ns)
{
    for (size_t i = 0; i < router->feed_count; i++)
        wr_feed_offer(&router->feeds[i], (struct wr_ticket){0}, now_ns);
    for (size_t i = 0; i < router->lane_count; i++)
        router->lanes[i].keeps = false;
    count_sums(router, now_ns);
}

void wr_router_seal(struct wr_router *router, int64_t now_ns)
{
    for (size_t i = 0; i < router->feed_count; i++)
        wr_feed_seal(&router->feeds[i], now_ns);
}

/* All calls wait for each full lane whose policy is to block. Sources wait as well if no lane has room; but not
 * for a lane that drops beside one that takes values, since then one dead handler would hold up the others. A
 * lane that sums always has room. Sets route->is_full. */
static enum wr_waiting who_waits(struct wr_route *route)
{
    enum wr_waiting least = WR_ALL_WAIT, most = WR_NOBODY_WAITS;
    for (size_t i = 0; i < route->lane_count; i++) {
        enum wr_waiting waiting = route->lanes[i]->waiting;
        least = waiting < least ? waiting : least;
        most = waiting > most ? waiting : most;
    }
    route->is_full = route->lane_count && least != WR_NOBODY_WAITS;
    return most == WR_ALL_WAIT || route->is_full ? most : WR_NOBODY_WAITS;
}

static void check_route(struct wr_router *router, struct wr_route *route)
{
    enum wr_waiting waiting = who_waits(route);
    if (waiting == route->waiting)
        return;
    if (waiting != WR_NOBODY_WAITS)
        router->waiting += route->waiting == WR_NOBODY_WAITS;
    else
        router->waiting--;
    route->waiting = waiting;
    for (struct wr_group *group = route->groups; group; group = group->route_next)
        set_gate(route, group);
}

int64_t wr_router_check(struct wr_router *router, int64_t now_ns)
{
    int64_t next_ns = WR_NEVER;
    bool is_waiting = false;
    for (size_t i = 0; i < router->lane_count; i++) {
        struct wr_feed_lane *lane = &router->lanes[i];
        if (lane->waiting)
            lane->waiting = wr_lane_check(lane->lane, now_ns, &next_ns);
        lane->was_full = lane->waiting != WR_NOBODY_WAITS;
        is_waiting |= lane->was_full;
    }
    if (!is_waiting && !router->waiting) /* the common case, and there may be many routes */
        return next_ns;
    for (size_t i = 0; i < router->route_count; i++)
        check_route(router, &router->routes[i]);
    return next_ns;
}
