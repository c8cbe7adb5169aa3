#include "engine/engine.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "text/common.h"
#include "text/error.h"
#include "lane/lane_flush.h"
#include "producer/gate.h"
#include "registry/family.h"
#include "os/futex.h"
#include "os/signals.h"
#include "lane/lane_stop.h"
#include "lane/lane_stats.h"
#include "lane/losses.h"

enum { JOURNAL_RETRY_S = 1 };

static const struct wr_engine_limits default_limits = {
    .lock_ns = 10 * WR_NS_PER_S,
    .settle_least_ns = 50 * WR_NS_PER_MS,
    .settle_most_ns = 5 * WR_NS_PER_S,
    .quiet_ns = 1 * WR_NS_PER_S,
    .logging_ns = 1 * WR_NS_PER_S,
    .save_ns = 10 * WR_NS_PER_S,
    .taking_ns = 1 * WR_NS_PER_S,
    .no_round_ns = 2 * WR_NS_PER_S,
};

/* ---- Journal and timers ---------------------------------------------------------------------- */

/* Stopping lanes have a deadline, also while their worker is inside its handler. */
static void check_leaving(struct wr_engine *engine, int64_t now_ns, int64_t *next_ns)
{
    if (!engine->leaving)
        return;
    engine->leaving = 0;
    for (struct wr_lane *lane = wr_engine_lanes(engine); lane; lane = wr_lane_next(lane)) {
        int64_t deadline_ns = WR_NEVER;
        wr_lane_check(lane, now_ns, &deadline_ns);
        engine->leaving += deadline_ns != WR_NEVER;
        if (deadline_ns < *next_ns)
            *next_ns = deadline_ns;
    }
}

void wr_engine_start_journal(struct wr_engine *engine, int64_t now_ns)
{
    struct wr_error error = {0};
    struct wr_dispatcher *dispatcher = &engine->dispatcher;
    if (engine->journal || !engine->journal_place)
        return;
    engine->journal =
        wr_journal_start(engine->journal_place, engine->registry, &dispatcher->deferred_log, &error);
    if (!engine->journal) {
        if (!engine->journal_retry_ns)
            wr_deferred_log_add(&dispatcher->deferred_log, "journal", WEIR_LOG_ERROR,
                                "%s; values go on without it", error.text);
        engine->journal_retry_ns = now_ns + JOURNAL_RETRY_S * WR_NS_PER_S;
        return;
    }
    if (engine->journal_retry_ns)
        wr_deferred_log_add(&dispatcher->deferred_log, "journal", WEIR_LOG_WARNING,
                            "%s: values are kept there again", engine->journal_place);
    engine->journal_retry_ns = 0;
    atomic_store(&engine->journals, true);
    dispatcher->drain.pool.journal = engine->journal;
    wr_producers_renew(engine->producers);
    wr_fronts_keep(&engine->fronts, engine->journal->dir.path);
    wr_recovery_run(&engine->recovery, engine->journal_place, dispatcher, now_ns);
}

static void tend_journal(struct wr_engine *engine, int64_t now_ns, int64_t *next_ns)
{
    if (engine->journal_retry_ns && now_ns >= engine->journal_retry_ns)
        wr_engine_start_journal(engine, now_ns);
    if (engine->journal_retry_ns && engine->journal_retry_ns < *next_ns)
        *next_ns = engine->journal_retry_ns;
    if (engine->journal && wr_journal_tend(engine->journal, now_ns, next_ns))
        wr_producers_renew(engine->producers);
    if (wr_segment_pool_has_free(&engine->recovery.pool))
        wr_recovery_tidy(&engine->recovery);
}

/* Caller holds the round lock. */
static void tend(void *ctx, int64_t now_ns, int64_t *next_ns)
{
    struct wr_engine *engine = ctx;
    check_leaving(engine, now_ns, next_ns);
    tend_journal(engine, now_ns, next_ns);
    wr_selfmetrics_tend(&engine->selfmetrics, &engine->dispatcher, engine->lanes, now_ns, next_ns);
    wr_reclaim_tend(&engine->reclaim, &engine->dispatcher, engine->lanes);
}

/* ---- Making one ------------------------------------------------------------------------------ */

struct wr_engine *wr_engine_new(struct wr_registry *registry, struct wr_producers *producers,
                                struct wr_plugins *plugins, struct wr_log *log, struct wr_config *config,
                                void (*after_handler)(struct wr_type *type))
{
    struct wr_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return NULL;
    engine->registry = registry;
    engine->producers = producers;
    engine->plugins = plugins;
    engine->log = log;
    engine->recovery.fronts = &engine->fronts;
    engine->worker_env = (struct wr_worker_env){registry, after_handler};
    engine->limits = default_limits;
    wr_dispatcher_init(&engine->dispatcher, registry, &engine->worker_env);
    engine->dispatcher.producers = producers;
    engine->dispatcher.log = log;
    engine->dispatcher.tend = tend;
    engine->dispatcher.ctx = engine;
    wr_config_hold(config);
    atomic_store(&engine->config, config);
    return engine;
}

/* ---- The round lock -------------------------------------------------------------------------- */

bool wr_engine_enter_by(struct wr_engine *engine, struct wr_visit *visit, int64_t deadline_ns)
{
    visit->engine = engine;
    wr_signals_block(&visit->signals);
    if (wr_dispatcher_visit_by(&engine->dispatcher, deadline_ns))
        return true;
    wr_signals_restore(&visit->signals);
    return false;
}

void wr_engine_enter(struct wr_engine *engine, struct wr_visit *visit)
{
    wr_engine_enter_by(engine, visit, WR_NEVER);
}

void wr_engine_leave(struct wr_visit *visit)
{
    wr_dispatcher_leave(&visit->engine->dispatcher);
    wr_signals_restore(&visit->signals);
}

struct wr_lane *wr_engine_find_lane(struct wr_engine *engine, const char *name)
{
    struct wr_lane *lane = wr_engine_lanes(engine);
    while (lane && strcmp(wr_lane_name(lane), name) != 0)
        lane = wr_lane_next(lane);
    return lane;
}

/* New lanes come in front of the list. */
struct wr_lane *wr_engine_lane_at(struct wr_engine *engine, size_t index)
{
    struct wr_lane *lane = wr_engine_lanes(engine);
    size_t count = wr_lane_count(lane);
    if (index >= count)
        return NULL;
    while (count-- > index + 1)
        lane = wr_lane_next(lane);
    return lane;
}

/* ---- Configuring ----------------------------------------------------------------------------- */

struct wr_config *wr_engine_config(struct wr_engine *engine, uint64_t *generation)
{
    struct wr_visit visit;
    wr_engine_enter(engine, &visit);
    *generation = atomic_load(&engine->generation);
    struct wr_config *config = atomic_load(&engine->config);
    wr_config_hold(config);
    wr_engine_leave(&visit);
    return config;
}

/* Also one that could not be started yet: it may be before the plan is committed. */
static bool keeps_journal(struct wr_engine *engine)
{
    struct wr_visit visit;
    wr_engine_enter(engine, &visit);
    bool has = engine->journal_place;
    wr_engine_leave(&visit);
    return has;
}

struct wr_plan_site wr_engine_plan_site(struct wr_engine *engine, uint64_t generation, bool in_child)
{
    return (struct wr_plan_site){
        .plugins = engine->plugins,
        .log = engine->log,
        .wakeup = &engine->dispatcher.wakeup,
        .deferred_log = &engine->dispatcher.deferred_log,
        .pool = &engine->dispatcher.drain.pool,
        .registry = engine->registry,
        .labels_number = atomic_fetch_add(&engine->labels_made, 2) + 1,
        .generation = generation,
        .lanes = wr_engine_lanes(engine),
        .after_create = engine->worker_env.after_call,
        .has_journal = keeps_journal(engine),
        .in_child = in_child,
    };
}

bool wr_engine_start(struct wr_engine *engine)
{
    struct wr_visit visit;
    wr_engine_enter(engine, &visit);
    const struct wr_router *router = engine->dispatcher.drain.router;
    if (router && router->lane_count)
        wr_dispatcher_start(&engine->dispatcher);
    bool started = atomic_load(&engine->dispatcher.running);
    wr_engine_leave(&visit);
    return started;
}

void wr_engine_reopen(struct wr_engine *engine)
{
    struct wr_visit visit;
    wr_engine_enter(engine, &visit);
    for (struct wr_lane *lane = wr_engine_lanes(engine); lane; lane = wr_lane_next(lane))
        wr_lane_request_reload(lane);
    wr_engine_leave(&visit);
}

/* ---- Producers ------------------------------------------------------------------------------- */

bool wr_engine_warm(struct wr_engine *engine, struct wr_group *group, bool start)
{
    struct wr_visit visit;
    wr_engine_enter(engine, &visit);
    bool is_routed =
        engine->dispatcher.drain.router && wr_router_route(engine->dispatcher.drain.router, group)->lane_count;
    if (is_routed && start)
        wr_dispatcher_start(&engine->dispatcher);
    bool runs = atomic_load(&engine->dispatcher.running);
    wr_engine_leave(&visit);
    return runs;
}

static void log_full_name(struct wr_engine *engine)
{
    const struct wr_family *family = atomic_load(&engine->registry->first_full);
    if (!family || atomic_load(&engine->full_logged) || atomic_exchange(&engine->full_logged, true))
        return;
    wr_log_write(
        engine->log, WEIR_LOG_WARNING,
        "group \"%s\": name \"%s\": the limit of %u label sets (settings.max_series_per_name) is reached; "
        "further ones share the label weir_overflow=\"true\"",
        family->group->name, family->name, atomic_load(&family->max_labeled));
}

void wr_engine_log_overflow(struct wr_engine *engine)
{
    log_full_name(engine);
    struct wr_group *group = atomic_load(&engine->registry->first_overflow);
    if (!group || atomic_load(&engine->overflow_logged) || atomic_exchange(&engine->overflow_logged, true))
        return;
    wr_log_write(
        engine->log, WEIR_LOG_WARNING,
        "settings.max_series (%u) is reached, first by group \"%s\": in each group, values of new names "
        "go to the series \"weir_overflow\", those of new label sets to that with the label "
        "weir_overflow=\"true\"",
        atomic_load(&engine->registry->max), group->name);
}

static void add(struct wr_lane_progress *sum, struct wr_lane_progress progress)
{
    sum->settled += progress.settled;
    sum->is_awaited |= progress.is_awaited;
    if (progress.timeout_ns > sum->timeout_ns)
        sum->timeout_ns = progress.timeout_ns;
}

/* The group has no synchronous handler any more: the call waits for one that it had, or for the dispatcher,
 * which has not taken its value yet. */
static void add_awaited(struct wr_lane_progress *sum, const struct wr_engine *engine)
{
    for (struct wr_lane *lane = wr_engine_lanes(engine); lane; lane = wr_lane_next(lane)) {
        struct wr_lane_progress progress = wr_lane_get_progress(lane);
        if (progress.is_awaited)
            add(sum, progress);
    }
    if (!sum->is_awaited)
        sum->timeout_ns = engine->limits.taking_ns;
}

struct wr_lane_progress wr_engine_sync_progress(struct wr_engine *engine, struct wr_group *group)
{
    struct wr_lane_progress progress = {0};
    struct wr_visit visit;
    wr_engine_enter(engine, &visit);
    const struct wr_route *route = wr_router_route(engine->dispatcher.drain.router, group);
    for (size_t i = 0; i < route->lane_count; i++)
        if (route->lanes[i]->sync)
            add(&progress, wr_lane_get_progress(route->lanes[i]->lane));
    if (!route->sync_lanes)
        add_awaited(&progress, engine);
    wr_engine_leave(&visit);
    return progress;
}

bool wr_engine_explain(struct wr_engine *engine, struct wr_group *group, int code, struct wr_error *error)
{
    struct wr_visit visit;
    bool explained = false;
    wr_engine_enter(engine, &visit);
    const struct wr_route *route = wr_router_route(engine->dispatcher.drain.router, group);
    for (size_t i = 0; i < route->lane_count && !explained; i++)
        explained = route->lanes[i]->sync && wr_lane_describe_error(route->lanes[i]->lane, code, error);
    wr_engine_leave(&visit);
    return explained;
}

void wr_engine_end_series(struct wr_engine *engine, const uint32_t *series, size_t count)
{
    struct wr_visit visit;
    wr_engine_enter(engine, &visit);
    wr_dispatcher_end_series(&engine->dispatcher, series, count);
    wr_engine_leave(&visit);
}

/* ---- Flushing -------------------------------------------------------------------------------- */

struct wr_lane *wr_engine_lanes(const struct wr_engine *engine)
{
    /* acquire: pairs with the release in the commit that prepends a lane */
    return atomic_load_explicit(&engine->lanes, memory_order_acquire);
}

/* Moves what has been added from the rings to the lanes, and ends the intervals of summaries: also_full: also
 * of lanes with a full queue. *queued: whether all were ended. A round starts at most WR_DISPATCHER_CLAIMS
 * workers and leaves further ones to the next round, but the dispatcher's thread may not be there to run it:
 * rounds are repeated until no worker is left. Returns false if the round lock was not free by deadline_ns. */
static bool run_rounds(struct wr_engine *engine, int64_t deadline_ns, bool also_full, bool *queued)
{
    struct wr_visit visit;
    bool ended = false, more = true;
    *queued = true;
    while (more) {
        int64_t next_ns;
        if (!wr_engine_enter_by(engine, &visit, deadline_ns))
            return false;
        wr_dispatcher_round(&engine->dispatcher, &next_ns);
        if (!ended) /* once: an interval without values has summaries, too */
            *queued = wr_dispatcher_end_intervals(&engine->dispatcher, also_full);
        ended = true;
        more = engine->dispatcher.claimed_count == WR_DISPATCHER_CLAIMS;
        wr_engine_leave(&visit);
    }
    return true;
}

static uint64_t count_dropped(struct wr_lane *lane)
{
    weir_handler_stats stats;
    wr_lane_stats_get(&stats, lane, 0);
    return wr_losses_sum(stats.dropped);
}

/* Reports each drop to one flush. Another flush may have counted later, and have reported these already. If the
 * round lock is not free by deadline_ns, some may be reported again. */
static int report_dropped(struct wr_engine *engine, int64_t deadline_ns, struct wr_error *error)
{
    uint64_t dropped = 0;
    struct wr_visit visit;
    for (struct wr_lane *lane = wr_engine_lanes(engine); lane; lane = wr_lane_next(lane))
        dropped += count_dropped(lane);
    bool entered = wr_engine_enter_by(engine, &visit, deadline_ns);
    uint64_t before = atomic_load(&engine->flush_dropped);
    uint64_t unreported = dropped > before ? dropped - before : 0;
    if (entered) {
        atomic_store(&engine->flush_dropped, before + unreported);
        wr_engine_leave(&visit);
    }
    if (!unreported)
        return 0;
    return wr_error_set(error, WEIR_ERR_DROPPED, "%" PRIu64 " values were dropped since the last flush",
                        unreported);
}

/* Of several results a flush returns the one of the highest rank: errors of handlers, then timeouts, then
 * values that are safe on disk. */
static int rank(int result)
{
    return result == 0 ? 0 : result == WEIR_ERR_SPOOLED ? 1 : result == WEIR_ERR_TIMEOUT ? 2 : 3;
}

/* Requests all flushes before waiting, so that the lanes deliver in parallel. Returns 0 or the error of the
 * highest rank. */
static int flush_lanes(struct wr_engine *engine, int64_t deadline_ns, struct wr_error *error)
{
    struct wr_lane *first = wr_engine_lanes(engine);
    int result = 0;
    size_t i = 0;
    uint64_t *positions = calloc(wr_lane_count(first) + 1, sizeof *positions);
    for (struct wr_lane *lane = first; positions && lane; lane = wr_lane_next(lane))
        positions[i++] = wr_lane_flush_request(lane, deadline_ns);
    i = 0;
    for (struct wr_lane *lane = first; lane; lane = wr_lane_next(lane)) {
        uint64_t position = positions ? positions[i++] : wr_lane_flush_request(lane, deadline_ns);
        struct wr_error late;
        int code = wr_lane_flush_wait(lane, position, deadline_ns, &late);
        if (rank(code) <= rank(result))
            continue;
        *error = late;
        result = code;
    }
    free(positions);
    return result;
}

int wr_engine_flush(struct wr_engine *engine, int64_t deadline_ns, struct wr_error *error)
{
    struct wr_error dropped;
    bool queued;
    int late;
    do {
        run_rounds(engine, WR_NEVER, false, &queued);
        late = flush_lanes(engine, deadline_ns, error);
    } while (!late && !queued); /* now that the full queue is delivered */
    if (late && late != WEIR_ERR_SPOOLED)
        return late;
    if (!report_dropped(engine, WR_NEVER, &dropped))
        return late;
    *error = dropped;
    return WEIR_ERR_DROPPED;
}

/* ---- Shutting down --------------------------------------------------------------------------- */

/* Wakes the calls that wait. All producers are closed before: a call that finds a gate OFF here is refused, not
 * counted as unrouted. */
static void open_all_gates(struct wr_engine *engine)
{
    struct wr_group *group = atomic_load_explicit(&engine->registry->last_group, memory_order_acquire);
    for (; group; group = group->next)
        wr_gate_set(group, WR_GATE_OFF);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Until when calls in progress are waited for: half of the time, because the handlers need the other half if a
 * call is stuck, such as in a signal handler that interrupted it. */
static int64_t settle_deadline(const struct wr_engine *engine, int64_t deadline_ns)
{
    int64_t now_ns = wr_clock_monotonic_ns(), half_ns = (deadline_ns - now_ns) / 2;
    if (half_ns > engine->limits.settle_most_ns)
        half_ns = engine->limits.settle_most_ns;
    return now_ns + later(half_ns, engine->limits.settle_least_ns);
}

/* The end of a wait of which nothing is logged. */
static int64_t quiet_until(const struct wr_engine *engine, int64_t deadline_ns)
{
    int64_t quiet_ns = wr_clock_monotonic_ns() + engine->limits.quiet_ns;
    return quiet_ns < deadline_ns ? quiet_ns : deadline_ns;
}

/* So long after a deadline, which may have passed before it was set. */
static int64_t after(int64_t deadline_ns, int64_t ns)
{
    return deadline_ns == WR_NEVER ? WR_NEVER : later(deadline_ns, wr_clock_monotonic_ns()) + ns;
}

/* Refuses all further calls, and wakes those that wait at gates. Returns whether all calls in progress have
 * ended. */
static bool close_producers(struct wr_engine *engine, int64_t deadline_ns, int64_t lock_ns)
{
    struct wr_visit visit;
    wr_producers_close(engine->producers);
    if (wr_engine_enter_by(engine, &visit, lock_ns)) {
        open_all_gates(engine);
        wr_engine_leave(&visit);
    }
    int64_t settle_ns = settle_deadline(engine, deadline_ns), quiet_ns = quiet_until(engine, settle_ns);
    uint32_t running = wr_producers_settle(engine->producers, quiet_ns);
    if (!running || quiet_ns == settle_ns)
        return !running;
    wr_log_write(engine->log, WEIR_LOG_WARNING,
                 "shutting down: waiting up to %" PRId64 " s more for %" PRIu32 " calls that add values",
                 (settle_ns - quiet_ns + WR_NS_PER_S - 1) / WR_NS_PER_S, running);
    return !wr_producers_settle(engine->producers, settle_ns);
}

/* After the last round and the end of the lanes: values of calls that were not waited for, or of which no round
 * could be run, are counted as dropped, or stay in the journal. Calls that still run are reported. Returns
 * false if the round lock is not free by lock_ns. */
static bool drain_late(struct wr_engine *engine, int64_t lock_ns)
{
    int64_t next_ns;
    struct wr_visit visit;
    uint32_t running = wr_producers_settle(engine->producers, 0);
    if (!wr_engine_enter_by(engine, &visit, lock_ns))
        return false;
    uint64_t late = wr_dispatcher_round(&engine->dispatcher, &next_ns);
    bool has_journal = engine->journal;
    wr_engine_leave(&visit);
    if (late || running)
        wr_log_write(engine->log, WEIR_LOG_ERROR,
                     "shutting down: %" PRIu64 " values were added too late for their handlers, and %" PRIu32
                     " calls that add values have not returned; these values %s",
                     late, running, has_journal ? "stay in the journal" : "are dropped");
    return true;
}

static int report_spooled(struct wr_lane *lanes, struct wr_error *error)
{
    uint64_t spooled = 0;
    for (struct wr_lane *lane = lanes; lane; lane = wr_lane_next(lane)) {
        weir_handler_stats stats;
        wr_lane_stats_get(&stats, lane, 0);
        spooled += stats.spooled;
    }
    if (!spooled)
        return 0;
    return wr_error_set(error, WEIR_ERR_SPOOLED, "%" PRIu64 " values are on disk only", spooled);
}

/* Undelivered values stay in the journal for recovery; without any, its files are removed. If the round lock is
 * not free by lock_ns, all files stay, and the next process recovers what they have. */
static void leave_journal(struct wr_engine *engine, int64_t lock_ns)
{
    struct wr_visit visit;
    if (!engine->journal || !wr_engine_enter_by(engine, &visit, lock_ns))
        return;
    struct wr_journal *journal = engine->journal;
    if (engine->dispatcher.drain.router)
        wr_router_seal(engine->dispatcher.drain.router, wr_clock_monotonic_ns());
    engine->journal = engine->dispatcher.drain.pool.journal = NULL;
    wr_segment_pool_trim(&engine->dispatcher.drain.pool);
    wr_recovery_leave(&engine->recovery);
    wr_fronts_leave(&engine->fronts, wr_clock_monotonic_ns());
    wr_journal_stop(journal);
    wr_engine_leave(&visit);
}

bool wr_engine_close(struct wr_engine *engine)
{
    if (atomic_exchange(&engine->closed, true))
        return false;
    atomic_store(&engine->closer, pthread_self());
    return true;
}

void wr_engine_shutdown_end(struct wr_engine *engine, const struct wr_error *error)
{
    if (error)
        engine->shutdown_error = *error;
    atomic_store(&engine->ended, 1);
    wr_futex_wake(&engine->ended, INT_MAX);
}

/* Such a call has read that weir is open, and then its thread did not run until the shutdown was finished. The
 * calling path cannot refuse it: it would have to look again after it has published. */
void wr_engine_take_late(struct wr_engine *engine)
{
    struct wr_dispatcher *dispatcher = &engine->dispatcher;
    int64_t next_ns;
    if (!atomic_load(&engine->ended) || engine->journal_place || !dispatcher->drain.router ||
        !wr_producers_have_values(engine->producers))
        return;
    uint64_t late = wr_dispatcher_round(dispatcher, &next_ns);
    wr_deferred_log_add(&dispatcher->deferred_log, "shutdown", WEIR_LOG_ERROR,
                        "%" PRIu64 " values were added after the shutdown was finished, by calls that had "
                        "begun before it; they are dropped",
                        late);
}

int wr_engine_shutdown_wait(struct wr_engine *engine, int64_t deadline_ns, struct wr_error *error)
{
    if (atomic_load(&engine->ended) || pthread_equal(atomic_load(&engine->closer), pthread_self()))
        return 0;
    while (!atomic_load(&engine->ended)) {
        int64_t left_ns = deadline_ns == WR_NEVER ? WR_NEVER : deadline_ns - wr_clock_monotonic_ns();
        if (left_ns <= 0)
            return wr_error_set(error, WEIR_ERR_TIMEOUT, "another thread is still shutting weir down");
        wr_futex_wait(&engine->ended, 0, left_ns);
    }
    *error = engine->shutdown_error;
    return error->code;
}

void wr_engine_report_unfinished(struct wr_engine *engine)
{
    struct wr_visit visit;
    weir_handler_stats stats;
    uint64_t queued = 0;
    atomic_store(&engine->unfinished, true);
    bool entered = wr_engine_enter_by(engine, &visit, after(0, engine->limits.settle_least_ns));
    bool has_journal = entered && engine->journal;
    if (entered)
        wr_engine_leave(&visit);
    for (struct wr_lane *lane = wr_engine_lanes(engine); lane; lane = wr_lane_next(lane)) {
        wr_lane_stats_get(&stats, lane, 0);
        queued += stats.queued;
    }
    wr_log_write(engine->log, WEIR_LOG_ERROR,
                 "the program ends while another thread is shutting weir down; %" PRIu64 " queued values %s",
                 queued, has_journal ? "stay in the journal" : "are lost");
}

/* Waits for a while in silence; lanes that take longer are logged. */
static void await_lanes(const struct wr_engine *engine, struct wr_lane *first, int64_t deadline_ns)
{
    int64_t quiet_ns = quiet_until(engine, deadline_ns);
    if (quiet_ns == deadline_ns)
        return;
    for (struct wr_lane *lane = first; lane; lane = wr_lane_next(lane))
        wr_lane_stop_await(lane, quiet_ns, deadline_ns);
}

/* Lets all lanes deliver, save and count what they have. */
static void stop_lanes(struct wr_engine *engine, struct wr_lane *first, int64_t deadline_ns)
{
    for (struct wr_lane *lane = first; lane; lane = wr_lane_next(lane))
        wr_lane_stop_request(lane, WEIR_DROPPED_SHUTDOWN, deadline_ns);
    await_lanes(engine, first, deadline_ns);
    int64_t save_ns = after(deadline_ns, engine->limits.save_ns);
    for (struct wr_lane *lane = first; lane; lane = wr_lane_next(lane))
        wr_lane_stop_save(lane, deadline_ns, save_ns);
    for (struct wr_lane *lane = first; lane; lane = wr_lane_next(lane))
        wr_lane_stop_wait(lane, deadline_ns, engine->limits.logging_ns);
}

static int report_uncounted(struct wr_engine *engine, struct wr_error *error)
{
    wr_log_write(
        engine->log, WEIR_LOG_ERROR,
        "shutting down: another thread has kept weir's lock; values that were added last may be neither "
        "delivered nor counted");
    return wr_error_set(error, WEIR_ERR_TIMEOUT, "values may be left: another thread has kept weir's lock");
}

/* Without the round lock, which a thread keeps that is stopped, for example, the lanes are stopped all the
 * same; only what calls have added since the last round is left then. */
int wr_engine_shutdown(struct wr_engine *engine, int64_t deadline_ns, struct wr_error *error)
{
    int64_t lock_ns = after(deadline_ns, engine->limits.lock_ns);
    bool queued, settled = close_producers(engine, deadline_ns, lock_ns);
    wr_dispatcher_stop(&engine->dispatcher, lock_ns);
    bool counted = run_rounds(engine, lock_ns, true, &queued);
    struct wr_lane *first = wr_engine_lanes(engine);
    stop_lanes(engine, first, deadline_ns);
    wr_dispatcher_join(&engine->dispatcher, after(deadline_ns, engine->limits.settle_least_ns));
    if (!settled || !counted)
        counted = drain_late(engine, lock_ns) && counted;
    for (struct wr_lane *lane = first; lane; lane = wr_lane_next(lane))
        wr_lane_stop_finish(lane);
    leave_journal(engine, lock_ns);
    wr_dispatcher_wait_logged(&engine->dispatcher, wr_clock_monotonic_ns() + engine->limits.logging_ns);
    if (!counted)
        return report_uncounted(engine, error);
    int dropped = report_dropped(engine, lock_ns, error);
    return dropped ? dropped : report_spooled(first, error);
}
