#include "engine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "common.h"
#include "error.h"
#include "gate.h"
#include "signals.h"

/* ---- Making one ------------------------------------------------------------------------------ */

/* Lanes that stop have a deadline that their worker may be too busy to notice. */
static void check_leaving(struct wr_engine *engine, int64_t now_ns, int64_t *next_ns)
{
    if (!engine->leaving)
        return;
    engine->leaving = 0;
    for (struct wr_lane *lane = engine->lanes; lane; lane = lane->next) {
        int64_t deadline_ns = WR_NEVER;
        wr_lane_check(lane, now_ns, &deadline_ns);
        engine->leaving += deadline_ns != WR_NEVER;
        if (deadline_ns < *next_ns)
            *next_ns = deadline_ns;
    }
}

/* [dispatcher's round] */
static void tend(void *ctx, int64_t now_ns, int64_t *next_ns)
{
    struct wr_engine *engine = ctx;
    check_leaving(engine, now_ns, next_ns);
    wr_selfmetrics_tend(&engine->selfmetrics, &engine->dispatcher, engine->lanes, now_ns, next_ns);
}

struct wr_engine *wr_engine_new(struct wr_registry *registry, struct wr_producers *producers,
                                struct wr_plugins *plugins, struct wr_log *log,
                                void (*after_handler)(void *ctx, struct wr_type *type))
{
    struct wr_engine *engine = calloc(1, sizeof *engine);
    struct wr_config *config = wr_config_new();
    if (!engine || !config) {
        free(engine);
        wr_config_drop(config);
        return NULL;
    }
    engine->registry = registry;
    engine->producers = producers;
    engine->plugins = plugins;
    engine->log = log;
    engine->crew = (struct wr_crew){registry, producers, after_handler, engine};
    wr_dispatcher_init(&engine->dispatcher, registry, &engine->crew);
    engine->dispatcher.tend = tend;
    engine->dispatcher.ctx = engine;
    atomic_store(&engine->config, config);
    return engine;
}

/* ---- Visiting the round ---------------------------------------------------------------------- */

/* A signal handler of the program's must not find the round lock held by the thread that it interrupts. */
struct visit {
    struct wr_engine *engine;
    sigset_t signals;
};

static bool enter_by(struct wr_engine *engine, struct visit *visit, int64_t deadline_ns)
{
    visit->engine = engine;
    wr_signals_block(&visit->signals);
    if (wr_dispatcher_visit_by(&engine->dispatcher, deadline_ns))
        return true;
    wr_signals_restore(&visit->signals);
    return false;
}

static void enter(struct wr_engine *engine, struct visit *visit)
{
    enter_by(engine, visit, WR_NEVER);
}

static void leave(struct visit *visit)
{
    wr_dispatcher_leave(&visit->engine->dispatcher);
    wr_signals_restore(&visit->signals);
}

static struct wr_lane *find_lane(struct wr_engine *engine, const char *name)
{
    struct wr_lane *lane = engine->lanes;
    while (lane && strcmp(lane->name, name) != 0)
        lane = lane->next;
    return lane;
}

/* ---- Configuring ----------------------------------------------------------------------------- */

static struct wr_lane *find_lane_for_plan(void *ctx, const char *name)
{
    struct visit visit;
    enter(ctx, &visit);
    struct wr_lane *lane = find_lane(ctx, name);
    leave(&visit);
    return lane;
}

struct wr_config *wr_engine_config(struct wr_engine *engine, uint64_t *generation)
{
    struct visit visit;
    enter(engine, &visit);
    *generation = atomic_load(&engine->generation);
    struct wr_config *config = atomic_load(&engine->config);
    wr_config_hold(config);
    leave(&visit);
    return config;
}

struct wr_plan *wr_engine_plan(struct wr_engine *engine, struct wr_config *config, bool in_child,
                               struct wr_error *error)
{
    struct wr_plan_site site = {
        .plugins = engine->plugins,
        .log = engine->log,
        .bell = &engine->dispatcher.bell,
        .pool = &engine->dispatcher.pool,
        .labels_number = atomic_fetch_add(&engine->labels_made, 1) + 1,
        .find_lane = find_lane_for_plan,
        .after_create = engine->crew.after_open,
        .ctx = engine,
        .in_child = in_child,
    };
    return wr_plan_new(config, &site, error);
}

/* What a commit takes out of use, to be freed without locks. */
struct discarded {
    struct wr_instance **instances;
    size_t count;
};

static void discard(struct discarded *discarded, struct wr_instance *instance)
{
    if (instance)
        discarded->instances[discarded->count++] = instance;
}

static size_t count_lanes(const struct wr_engine *engine)
{
    size_t count = 0;
    for (const struct wr_lane *lane = engine->lanes; lane; lane = lane->next)
        count++;
    return count;
}

/* Under the lane's lock: the plan's instance comes in. A worker puts it in place itself, when its handler is
 * closed. */
static void bring_in(struct wr_lane *lane, struct wr_instance *instance, struct discarded *discarded)
{
    discard(discarded, lane->successor);
    lane->successor = instance;
    if (lane->worker == WR_WORKER_RUNNING) {
        lane->ending = WR_LANE_LIVES;
        wr_condition_wake(&lane->work);
        return;
    }
    discard(discarded, lane->instance);
    wr_instance_take_over(lane);
}

static void renew_lane(struct wr_engine *engine, struct wr_plan_handler *handler, struct discarded *discarded)
{
    struct wr_lane *lane = handler->lane;
    if (handler->new_lane) {
        handler->new_lane = false;
        lane->next = engine->lanes;
        engine->lanes = lane;
    }
    wr_lock_enter(&lane->lock);
    lane->stopping = false;
    wr_labels_drop(lane->labels);
    lane->labels = engine->labels;
    wr_labels_hold(lane->labels);
    if (handler->ending != WR_LANE_LIVES)
        lane->ending = handler->ending;
    if (handler->instance)
        bring_in(lane, handler->instance, discarded);
    handler->instance = NULL;
    wr_lane_leave(lane);
}

/* What stays as it is must still be there; from here on it will not come to an end. */
static bool claim_lanes(struct wr_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct wr_plan_handler *handler = &plan->handlers[i];
        if (!handler->lane || handler->instance || handler->ending != WR_LANE_LIVES)
            continue;
        wr_lock_enter(&handler->lane->lock);
        bool there =
            (handler->lane->instance || handler->lane->successor) && handler->lane->ending == WR_LANE_LIVES;
        handler->lane->stopping &= !there;
        wr_lane_leave(handler->lane);
        if (!there)
            return false;
    }
    return true;
}

static bool is_planned(const struct wr_plan *plan, const struct wr_lane *lane)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->handlers[i].lane == lane)
            return true;
    return false;
}

static void remove_lane(struct wr_engine *engine, struct wr_lane *lane, int64_t deadline_ns,
                        struct discarded *discarded)
{
    wr_lock_enter(&lane->lock);
    bool was_stopping = lane->stopping;
    discard(discarded, lane->successor);
    lane->successor = NULL;
    if (lane->worker != WR_WORKER_RUNNING) {
        discard(discarded, lane->instance);
        lane->instance = NULL;
    }
    wr_lane_leave(lane);
    if (was_stopping)
        return;
    wr_lane_request_stop(lane, WEIR_DROPPED_REMOVED, deadline_ns);
    engine->leaving++;
}

/* Equal labels keep their number, and with it what encoders have made of them. */
static void change_labels(struct wr_engine *engine, struct wr_plan *plan)
{
    if (wr_labels_equal(engine->labels, plan->labels))
        return;
    wr_labels_drop(engine->labels);
    engine->labels = plan->labels;
    plan->labels = NULL;
}

static void change_lanes(struct wr_engine *engine, struct wr_plan *plan, int64_t now_ns,
                         struct discarded *discarded)
{
    int64_t deadline_ns = now_ns + plan->config->settings.shutdown_timeout_ns;
    for (size_t i = 0; i < plan->count; i++)
        if (plan->handlers[i].lane)
            renew_lane(engine, &plan->handlers[i], discarded);
    for (struct wr_lane *lane = engine->lanes; lane; lane = lane->next)
        if (!is_planned(plan, lane))
            remove_lane(engine, lane, deadline_ns, discarded);
}

static struct wr_config *change_config(struct wr_engine *engine, struct wr_plan *plan)
{
    const struct wr_settings *settings = &plan->config->settings;
    atomic_store(&engine->registry->max, (uint32_t)settings->max_series);
    wr_config_hold(plan->config);
    struct wr_config *before = atomic_exchange(&engine->config, plan->config);
    atomic_fetch_add(&engine->generation, 1);
    return before;
}

static void commit(struct wr_engine *engine, struct wr_plan *plan, struct discarded *discarded)
{
    int64_t now_ns = wr_clock_monotonic_ns();
    wr_dispatcher_switch(&engine->dispatcher, plan->router);
    plan->router = NULL;
    change_labels(engine, plan);
    change_lanes(engine, plan, now_ns, discarded);
    wr_config_drop(change_config(engine, plan));
    wr_selfmetrics_configure(&engine->selfmetrics, &engine->dispatcher,
                             plan->config->settings.stats_interval_ns, now_ns);
    wr_dispatcher_hurry(&engine->dispatcher); /* its timers may have changed */
}

bool wr_engine_commit(struct wr_engine *engine, struct wr_plan *plan, uint64_t generation)
{
    struct discarded discarded = {0};
    struct visit visit;
    enter(engine, &visit);
    bool fits = atomic_load(&engine->generation) == generation;
    if (fits) {
        discarded.instances = calloc(2 * (count_lanes(engine) + plan->count) + 1, sizeof *discarded.instances);
        fits = discarded.instances && claim_lanes(plan);
    }
    if (fits)
        commit(engine, plan, &discarded);
    leave(&visit);
    for (size_t i = 0; i < discarded.count; i++)
        wr_instance_free(discarded.instances[i]);
    free(discarded.instances);
    wr_plan_free(plan);
    return fits;
}

void wr_engine_make_router(struct wr_engine *engine)
{
    struct wr_error error = {0};
    uint64_t generation;
    struct visit visit;
    enter(engine, &visit);
    bool has_router = engine->dispatcher.router;
    leave(&visit);
    if (has_router)
        return;
    struct wr_config *config = wr_engine_config(engine, &generation);
    struct wr_plan *plan = wr_engine_plan(engine, config, true, &error);
    wr_config_drop(config);
    if (plan)
        wr_engine_commit(engine, plan, generation);
    else
        wr_log_say(engine->log, WEIR_LOG_ERROR, "%s; nothing is delivered", error.text);
}

bool wr_engine_is_started(struct wr_engine *engine)
{
    struct visit visit;
    enter(engine, &visit);
    bool started = atomic_load(&engine->dispatcher.running);
    leave(&visit);
    return started;
}

void wr_engine_reopen(struct wr_engine *engine)
{
    struct visit visit;
    enter(engine, &visit);
    for (struct wr_lane *lane = engine->lanes; lane; lane = lane->next) {
        wr_lock_enter(&lane->lock);
        lane->reload_wanted = true;
        lane->retry_at_ns = 0;
        wr_condition_wake(&lane->work);
        wr_lane_leave(lane);
    }
    leave(&visit);
}

/* ---- Producers ------------------------------------------------------------------------------- */

bool wr_engine_warm(struct wr_engine *engine, struct wr_group *group, bool start)
{
    struct visit visit;
    enter(engine, &visit);
    bool heard = engine->dispatcher.router && wr_router_route(engine->dispatcher.router, group)->lane_count;
    if (heard && start)
        wr_dispatcher_start(&engine->dispatcher);
    bool runs = atomic_load(&engine->dispatcher.running);
    leave(&visit);
    return runs;
}

void wr_engine_say_overflow(struct wr_engine *engine)
{
    struct wr_group *group = atomic_load(&engine->registry->overflown);
    if (!group || atomic_exchange(&engine->overflow_said, true))
        return;
    wr_log_say(
        engine->log, WEIR_LOG_WARNING,
        "settings.max_series (%u) is reached, first by group \"%s\": values of further names go to its series "
        "\"weir_overflow\", and so with every other group",
        atomic_load(&engine->registry->max), group->name);
}

static void add_progress(struct wr_engine_progress *progress, struct wr_lane *lane)
{
    wr_lock_enter(&lane->lock);
    int64_t timeout_ns = lane->settings.block_timeout_ns + lane->patience_ns;
    progress->settled += lane->offered - wr_lane_queued(lane);
    if (timeout_ns > progress->timeout_ns)
        progress->timeout_ns = timeout_ns;
    wr_lane_leave(lane);
}

struct wr_engine_progress wr_engine_sync_progress(struct wr_engine *engine, struct wr_group *group)
{
    struct wr_engine_progress progress = {0, 0};
    struct visit visit;
    enter(engine, &visit);
    const struct wr_route *route = wr_router_route(engine->dispatcher.router, group);
    for (size_t i = 0; i < route->lane_count; i++)
        if (route->lanes[i]->sync)
            add_progress(&progress, route->lanes[i]->lane);
    leave(&visit);
    return progress;
}

bool wr_engine_explain(struct wr_engine *engine, struct wr_group *group, int answer, struct wr_error *error)
{
    struct visit visit;
    bool explained = false;
    enter(engine, &visit);
    const struct wr_route *route = wr_router_route(engine->dispatcher.router, group);
    for (size_t i = 0; i < route->lane_count && !explained; i++)
        explained = route->lanes[i]->sync && wr_lane_explain(route->lanes[i]->lane, answer, error);
    leave(&visit);
    return explained;
}

/* ---- Flushing -------------------------------------------------------------------------------- */

struct wr_lane *wr_engine_lanes(struct wr_engine *engine)
{
    struct visit visit;
    enter(engine, &visit);
    struct wr_lane *lane = engine->lanes;
    leave(&visit);
    return lane;
}

static void run_round(struct wr_engine *engine)
{
    struct visit visit;
    int64_t next_ns;
    enter(engine, &visit);
    wr_dispatcher_round(&engine->dispatcher, &next_ns);
    leave(&visit);
}

static uint64_t count_dropped(struct wr_lane *lane)
{
    uint64_t dropped = 0;
    weir_handler_stats stats;
    wr_lane_read_stats(lane, &stats, 0);
    for (int i = 0; i < WEIR_DROPS; i++)
        dropped += stats.dropped[i];
    return dropped;
}

/* What the caller learns about drops: each is told once. */
static int report_dropped(struct wr_engine *engine, struct wr_error *error)
{
    uint64_t dropped = 0;
    struct visit visit;
    for (struct wr_lane *lane = wr_engine_lanes(engine); lane; lane = lane->next)
        dropped += count_dropped(lane);
    enter(engine, &visit);
    uint64_t fresh = dropped - engine->flush_dropped;
    engine->flush_dropped = dropped;
    leave(&visit);
    if (!fresh)
        return 0;
    return wr_error_set(error, WEIR_ERR_DROPPED, "%" PRIu64 " values were dropped since the last flush", fresh);
}

/* All lanes are asked first, so that they deliver side by side. Answers 0, or the error of a late one. */
static int flush_lanes(struct wr_engine *engine, int64_t deadline_ns, struct wr_error *error)
{
    struct wr_lane *first = wr_engine_lanes(engine);
    int result = 0;
    size_t count = 0, i = 0;
    for (struct wr_lane *lane = first; lane; lane = lane->next)
        count++;
    uint64_t *positions = calloc(count + 1, sizeof *positions);
    for (struct wr_lane *lane = first; positions && lane; lane = lane->next)
        positions[i++] = wr_lane_request_flush(lane, deadline_ns);
    i = 0;
    for (struct wr_lane *lane = first; lane; lane = lane->next) {
        uint64_t position = positions ? positions[i++] : wr_lane_request_flush(lane, deadline_ns);
        struct wr_error late;
        int answer = wr_lane_wait_flushed(lane, position, deadline_ns, &late);
        if (!answer || (result && answer == WEIR_ERR_TIMEOUT))
            continue; /* what a handler said of itself tells more than that another one is late */
        *error = late;
        result = answer;
    }
    free(positions);
    return result;
}

int wr_engine_flush(struct wr_engine *engine, int64_t deadline_ns, struct wr_error *error)
{
    run_round(engine);
    int late = flush_lanes(engine, deadline_ns, error);
    return late ? late : report_dropped(engine, error);
}

/* ---- Shutting down --------------------------------------------------------------------------- */

static void open_all_gates(struct wr_engine *engine)
{
    struct wr_group *group = atomic_load_explicit(&engine->registry->last_group, memory_order_acquire);
    for (; group; group = group->next)
        wr_gate_set(group, WR_GATE_OFF);
}

/* Producers first: from here on each call is refused, and those that wait at gates come back. */
static void close_producers(struct wr_engine *engine, int64_t deadline_ns)
{
    struct visit visit;
    int64_t patience_ns = wr_clock_monotonic_ns() + 50 * WR_NS_PER_MS;
    wr_producers_close(engine->producers);
    if (enter_by(engine, &visit, deadline_ns)) {
        open_all_gates(engine);
        leave(&visit);
    }
    wr_producers_settle(engine->producers, patience_ns < deadline_ns ? patience_ns : deadline_ns);
}

/* What is in the rings goes to the lanes: the last round. Answers the lanes, or NULL where there are none to be
 * had. */
static struct wr_lane *drain_rings(struct wr_engine *engine, int64_t deadline_ns)
{
    int64_t next_ns;
    struct visit visit;
    if (!enter_by(engine, &visit, deadline_ns))
        return NULL;
    wr_dispatcher_round(&engine->dispatcher, &next_ns);
    struct wr_lane *first = engine->lanes;
    leave(&visit);
    return first;
}

int wr_engine_shutdown(struct wr_engine *engine, int64_t deadline_ns, struct wr_error *error)
{
    if (atomic_exchange(&engine->closed, true))
        return 0;
    close_producers(engine, deadline_ns);
    wr_dispatcher_stop(&engine->dispatcher, deadline_ns);
    struct wr_lane *first = drain_rings(engine, deadline_ns);
    for (struct wr_lane *lane = first; lane; lane = lane->next)
        wr_lane_request_stop(lane, WEIR_DROPPED_SHUTDOWN, deadline_ns);
    for (struct wr_lane *lane = first; lane; lane = lane->next)
        wr_lane_wait_stopped(lane, deadline_ns);
    return report_dropped(engine, error);
}

/* ---- The ledger ------------------------------------------------------------------------------ */

static void add_ring(weir_stats *stats, const struct wr_producer *producer)
{
    const struct wr_ring *ring = &producer->ring;
    uint64_t unrouted = atomic_load_explicit(&producer->unrouted, memory_order_relaxed);
    uint64_t head = wr_ring_taken(ring), tail = wr_ring_published(ring);
    stats->taken += head - ring->text_slots + unrouted;
    stats->in_rings += wr_ring_count_samples(ring, head, tail);
    stats->unrouted += unrouted;
}

void wr_engine_stats(struct wr_engine *engine, weir_stats *stats)
{
    struct visit visit;
    struct wr_producers *producers = engine->producers;
    *stats = (weir_stats){.size = sizeof *stats};
    enter(engine, &visit);
    uint32_t count = atomic_load_explicit(&producers->count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++)
        add_ring(stats, producers->all[i]);
    const struct wr_producer *shared = atomic_load_explicit(&producers->shared, memory_order_acquire);
    if (shared)
        add_ring(stats, shared);
    stats->unrouted += engine->dispatcher.unrouted;
    leave(&visit);
    stats->added = stats->taken + stats->in_rings;
    for (int i = 0; i < WEIR_REFUSALS; i++)
        stats->refused[i] = atomic_load_explicit(&producers->refused[i], memory_order_relaxed);
    stats->threads = count;
    stats->series = atomic_load_explicit(&engine->registry->count, memory_order_relaxed);
}

/* With the round held, so that it goes with a snapshot of the process taken at the same time of rest. */
bool wr_engine_handler_stats(struct wr_engine *engine, const char *name, weir_handler_stats *stats)
{
    struct visit visit;
    enter(engine, &visit);
    struct wr_lane *lane = find_lane(engine, name);
    if (lane)
        wr_lane_read_stats(lane, stats, wr_clock_monotonic_ns());
    leave(&visit);
    return lane;
}
