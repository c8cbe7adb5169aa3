#include "dispatch/dispatcher.h"

#include <string.h>
#include <time.h>

#include "os/clock.h"
#include "text/common.h"
#include "os/futex.h"
#include "journal/journal.h"
#include "lane/lane_now.h"
#include "os/membarrier.h"
#include "producer/ring.h"
#include "registry/series.h"
#include "os/signals.h"
#include "os/thread.h"

enum {
    QUIET_MS = 10, /* a ring without new samples for this time is parked */
    NAP_US = 500,  /* between rounds while rings are active, so that a round takes many samples */
    START_AGAIN_S = 1,
};

void wr_dispatcher_init(struct wr_dispatcher *dispatcher, struct wr_registry *registry,
                        const struct wr_worker_env *env)
{
    dispatcher->drain.registry = registry;
    dispatcher->worker_env = env;
    dispatcher->drain.still_ns = WR_DRAIN_REAL_TIME;
    dispatcher->drain.taken.sketch.slab = &dispatcher->drain.slab;
    wr_timeline_start(&dispatcher->drain.timeline);
}

/* ---- The round lock -------------------------------------------------------------------------- */

/* The lock is not fair. Visitors and the dispatcher's thread take turns: the visitors that wait when a round
 * has ended go first (let_visitors_in); those that come later wait until the dispatcher's thread has the lock
 * for the next round (take_turn). */

static void wait_for_turn(struct wr_dispatcher *dispatcher, int64_t deadline_ns)
{
    while (atomic_load(&dispatcher->due)) {
        int64_t left_ns = deadline_ns == WR_NEVER ? WR_NEVER : deadline_ns - wr_clock_monotonic_ns();
        if (left_ns <= 0)
            return;
        wr_futex_wait(&dispatcher->due, 1, left_ns);
    }
}

bool wr_dispatcher_visit_by(struct wr_dispatcher *dispatcher, int64_t deadline_ns)
{
    atomic_fetch_add(&dispatcher->visitors, 1);
    wait_for_turn(dispatcher, deadline_ns);
    bool entered = wr_lock_enter_by(&dispatcher->round, deadline_ns);
    if (entered)
        wr_deferred_log_enter(&dispatcher->deferred_log);
    atomic_fetch_add(&dispatcher->visits, 1);
    atomic_fetch_sub(&dispatcher->visitors, 1);
    return entered;
}

void wr_dispatcher_visit(struct wr_dispatcher *dispatcher)
{
    wr_dispatcher_visit_by(dispatcher, WR_NEVER);
}

static void leave_and_log(struct wr_dispatcher *dispatcher)
{
    struct wr_deferred_texts texts = wr_deferred_log_take(&dispatcher->deferred_log);
    atomic_fetch_add(&dispatcher->logging, 1);
    wr_lock_leave(&dispatcher->round);
    wr_deferred_log_write(&texts, dispatcher->log);
    atomic_fetch_sub(&dispatcher->logging, 1);
    wr_futex_wake(&dispatcher->logging, INT32_MAX);
}

static void release(struct wr_dispatcher *dispatcher)
{
    wr_deferred_log_leave(&dispatcher->deferred_log);
    if (WR_UNLIKELY(!wr_deferred_log_is_empty(&dispatcher->deferred_log)))
        leave_and_log(dispatcher);
    else
        wr_lock_leave(&dispatcher->round);
}

static void start_thread(struct wr_dispatcher *dispatcher);
static void start_workers(struct wr_dispatcher *dispatcher, struct wr_lane *const *lanes, uint32_t count);

void wr_dispatcher_leave(struct wr_dispatcher *dispatcher)
{
    struct wr_lane *lanes[WR_DISPATCHER_CLAIMS];
    uint32_t count = dispatcher->claimed_count;
    bool starting = dispatcher->starting;
    memcpy(lanes, dispatcher->claimed, count * sizeof *lanes);
    dispatcher->claimed_count = 0;
    dispatcher->starting = false;
    release(dispatcher);
    if (WR_UNLIKELY(starting))
        start_thread(dispatcher);
    if (WR_UNLIKELY(count))
        start_workers(dispatcher, lanes, count);
}

void wr_dispatcher_wait_logged(struct wr_dispatcher *dispatcher, int64_t deadline_ns)
{
    uint32_t logging;
    int64_t left_ns;
    while ((logging = atomic_load(&dispatcher->logging)) &&
           (left_ns = deadline_ns - wr_clock_monotonic_ns()) > 0)
        wr_futex_wait(&dispatcher->logging, logging, left_ns);
}

/* Lets as many visitors in as wait now. The difference is of unsigned numbers, which may wrap. */
static void let_visitors_in(struct wr_dispatcher *dispatcher)
{
    uint32_t before = atomic_load(&dispatcher->visits), waiting = atomic_load(&dispatcher->visitors);
    while (atomic_load(&dispatcher->visitors) && atomic_load(&dispatcher->visits) - before < waiting)
        nanosleep(&(struct timespec){.tv_nsec = 20 * WR_NS_PER_US}, NULL);
}

static void take_turn(struct wr_dispatcher *dispatcher)
{
    let_visitors_in(dispatcher);
    atomic_store(&dispatcher->due, 1);
    wr_lock_enter(&dispatcher->round);
    atomic_store(&dispatcher->due, 0);
    if (atomic_load(&dispatcher->visitors))
        wr_futex_wake(&dispatcher->due, INT32_MAX);
}

/* ---- Parking and waking rings ---------------------------------------------------------------- */

static void adopt_woken(struct wr_dispatcher *dispatcher)
{
    /* acquire: pairs with the release in wr_dispatcher_wake */
    struct wr_producer *producer = atomic_exchange_explicit(&dispatcher->woken, NULL, memory_order_acquire);
    while (producer) {
        struct wr_producer *next = producer->next_active;
        producer->ring.quiet_since_ns = 0;
        dispatcher->active[dispatcher->active_count++] = producer;
        producer = next;
    }
}

/* Whether a ring has been quiet for long enough to be parked. */
static bool is_quiet(struct wr_ring *ring, bool took, int64_t now_ns)
{
    if (took) {
        ring->quiet_since_ns = 0;
        return false;
    }
    if (!ring->quiet_since_ns)
        ring->quiet_since_ns = now_ns;
    return now_ns - ring->quiet_since_ns >= QUIET_MS * WR_NS_PER_MS;
}

/* After the barrier: whether nothing was published before the writer could see `parked`. */
static bool stays_parked(struct wr_ring *ring)
{
    if (atomic_load(&ring->tail) == wr_ring_taken(ring))
        return true;
    /* something was. The thread that exchanges the 1 is responsible for the ring: either we keep it active, or
     * the writer has pushed it on the stack */
    return atomic_exchange_explicit(&ring->parked, 0, memory_order_relaxed) == 0;
}

/* Parks the rings that have been quiet. A writer stores tail and then loads parked; we store parked and then
 * load tail. The membarrier replaces the writer's fence between the two, so at least one of us sees the other's
 * store.
 */
static void park_quiet(struct wr_dispatcher *dispatcher, bool *quiet)
{
    bool any = false;
    for (uint32_t i = 0; i < dispatcher->active_count; i++) {
        if (quiet[i]) /* release: pairs with the acquire in wr_dispatcher_wake */
            atomic_store_explicit(&dispatcher->active[i]->ring.parked, 1, memory_order_release);
        any |= quiet[i];
    }
    if (!any)
        return;
    wr_membarrier();
    uint32_t kept = 0;
    for (uint32_t i = 0; i < dispatcher->active_count; i++)
        if (!quiet[i] || !stays_parked(&dispatcher->active[i]->ring))
            dispatcher->active[kept++] = dispatcher->active[i];
    dispatcher->active_count = kept;
    if (!kept)
        wr_segment_pool_trim(&dispatcher->drain.pool);
}

void wr_dispatcher_wake(struct wr_dispatcher *dispatcher, struct wr_producer *producer)
{
    /* acquire: pairs with the release in park_quiet. The 1 transfers ownership of next_active: the dispatcher
     * read it when it took the ring off the stack, and we are about to write it */
    if (!atomic_exchange_explicit(&producer->ring.parked, 0, memory_order_acquire))
        return;
    producer->next_active = atomic_load_explicit(&dispatcher->woken, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&dispatcher->woken, &producer->next_active, producer))
        ;
    wr_wakeup_send(&dispatcher->wakeup);
}

void wr_dispatcher_hurry(struct wr_dispatcher *dispatcher)
{
    wr_wakeup_send(&dispatcher->wakeup);
}

void wr_dispatcher_wait_room(struct wr_dispatcher *dispatcher, struct wr_producer *producer, uint64_t count,
                             int64_t timeout_ns)
{
    struct wr_ring *ring = &producer->ring;
    uint32_t room = atomic_load_explicit(&ring->room, memory_order_acquire);
    bool starves = wr_ring_starve(ring, count);
    wr_wakeup_send(&dispatcher->wakeup);
    if (starves)
        wr_futex_wait(&ring->room, room, timeout_ns);
}

static uint64_t run_round(struct wr_dispatcher *dispatcher, int64_t *next_ns, bool tends, bool cells);

void wr_dispatcher_renew(struct wr_dispatcher *dispatcher, struct wr_producer *producer)
{
    sigset_t signals;
    int64_t next_ns;
    if (producer->own)
        return;
    wr_signals_block(&signals);
    wr_dispatcher_visit(dispatcher);
    run_round(dispatcher, &next_ns, true, false); /* wr_drain_renew takes this thread's cells */
    bool done = wr_drain_renew(&dispatcher->drain, producer);
    wr_dispatcher_leave(dispatcher);
    if (done)
        wr_producers_renewed(producer->home);
    wr_signals_restore(&signals);
}

void wr_dispatcher_make_cells(struct wr_dispatcher *dispatcher, struct wr_producer *producer)
{
    sigset_t signals;
    wr_signals_block(&signals);
    wr_dispatcher_visit(dispatcher);
    wr_drain_make_cells(&dispatcher->drain, producer);
    wr_dispatcher_leave(dispatcher);
    wr_signals_restore(&signals);
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

static uint64_t take_all(struct wr_dispatcher *dispatcher, int64_t now_ns, bool *quiet)
{
    uint64_t taken = 0;
    for (uint32_t i = 0; i < dispatcher->active_count; i++) {
        struct wr_producer *producer = dispatcher->active[i];
        uint64_t samples =
            wr_drain_ring(&dispatcher->drain, producer, wr_ring_published(&producer->ring), now_ns);
        quiet[i] = is_quiet(&producer->ring, samples > 0, now_ns);
        taken += samples;
    }
    return taken;
}

enum { ALL_SERIES = UINT32_MAX };

/* Of all threads; series: of this one, or of ALL_SERIES. */
static uint64_t take_cells(struct wr_dispatcher *dispatcher, uint32_t series)
{
    const struct wr_producers *producers = dispatcher->producers;
    uint64_t taken = 0;
    /* acquire: pairs with the release in make_producer; threads beyond WR_PRODUCERS_MOST have no cells */
    uint32_t count = producers ? atomic_load_explicit(&producers->count, memory_order_acquire) : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct wr_producer *producer = producers->all[i];
        if (wr_producer_is_cold(producer) || !wr_cells_have_values(&producer->cells))
            continue;
        taken += series == ALL_SERIES ? wr_drain_cells(&dispatcher->drain, &producer->cells)
                                      : wr_drain_cell(&dispatcher->drain, &producer->cells, series);
    }
    return taken;
}

void wr_dispatcher_take_cells(struct wr_dispatcher *dispatcher)
{
    if (dispatcher->drain.router && take_cells(dispatcher, ALL_SERIES))
        wr_router_offer(dispatcher->drain.router, wr_clock_monotonic_ns());
}

/* A lane's worker is started when the lane has something to do. Lowers *next_ns to the next attempt to start
 * one that could not be started. */
static void claim_workers(struct wr_dispatcher *dispatcher, int64_t now_ns, int64_t *next_ns)
{
    struct wr_router *router = dispatcher->drain.router;
    for (size_t i = 0; i < router->lane_count; i++) {
        struct wr_feed_lane *lane = &router->lanes[i];
        if (lane->started || !lane->wanted)
            continue;
        if (now_ns < lane->start_again_ns) {
            *next_ns = lane->start_again_ns < *next_ns ? lane->start_again_ns : *next_ns;
            continue;
        }
        if (dispatcher->claimed_count == WR_DISPATCHER_CLAIMS) {
            wr_dispatcher_hurry(dispatcher); /* another round, after these have been started */
            break;
        }
        lane->started = true;
        if (wr_worker_claim(lane->lane, dispatcher->worker_env))
            dispatcher->claimed[dispatcher->claimed_count++] = lane->lane;
    }
}

static void try_again_later(struct wr_router *router, const struct wr_lane *lane, int64_t now_ns)
{
    for (size_t i = 0; i < router->lane_count; i++) {
        if (router->lanes[i].lane != lane)
            continue;
        router->lanes[i].started = false;
        router->lanes[i].start_again_ns = now_ns + START_AGAIN_S * WR_NS_PER_S;
    }
}

/* Caller has left the round. */
static void start_workers(struct wr_dispatcher *dispatcher, struct wr_lane *const *lanes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (wr_worker_start(lanes[i]))
            continue;
        wr_lock_enter(&dispatcher->round);
        try_again_later(dispatcher->drain.router, lanes[i], wr_clock_monotonic_ns());
        wr_lock_leave(&dispatcher->round);
        wr_dispatcher_hurry(dispatcher); /* it may sleep without regard to the next attempt */
    }
}

static void mark_time(struct wr_drain *drain)
{
    wr_timeline_mark(&drain->timeline);
    if (!drain->pool.journal)
        return;
    wr_journal_keep_line(drain->pool.journal, &drain->timeline);
    drain->round_ns = wr_clock_wall_ns();
}

/* tends: with the periodic work, which may allocate. cells: also if no interval ends. */
static uint64_t run_round(struct wr_dispatcher *dispatcher, int64_t *next_ns, bool tends, bool cells)
{
    bool quiet[WR_PRODUCERS_MOST + 1]; /* of the active rings */
    int64_t now_ns = wr_clock_monotonic_ns();
    *next_ns = WR_NEVER;
    if (!dispatcher->drain.router)
        return 0;
    adopt_woken(dispatcher);
    mark_time(&dispatcher->drain);
    memset(quiet, 0, dispatcher->active_count * sizeof *quiet);
    uint64_t taken = take_all(dispatcher, now_ns, quiet);
    if (cells || wr_router_has_due(dispatcher->drain.router, now_ns))
        taken += take_cells(dispatcher, ALL_SERIES);
    wr_router_offer(dispatcher->drain.router, now_ns);
    *next_ns = wr_router_check(dispatcher->drain.router, now_ns);
    wr_router_end_due(dispatcher->drain.router, dispatcher->drain.registry, now_ns, next_ns);
    claim_workers(dispatcher, now_ns, next_ns);
    if (tends && dispatcher->tend)
        dispatcher->tend(dispatcher->ctx, now_ns, next_ns);
    park_quiet(dispatcher, quiet);
    atomic_fetch_add_explicit(&dispatcher->rounds, 1, memory_order_relaxed);
    wr_room_wake(dispatcher->room_waiters);
    return taken;
}

uint64_t wr_dispatcher_round(struct wr_dispatcher *dispatcher, int64_t *next_ns)
{
    return run_round(dispatcher, next_ns, true, true);
}

/* Threads that the round wants, and messages, are left to the dispatcher's thread. It may be past its own
 * round, and about to sleep. */
static void leave_to_thread(struct wr_dispatcher *dispatcher)
{
    if (dispatcher->claimed_count || dispatcher->starting ||
        !wr_deferred_log_is_empty(&dispatcher->deferred_log))
        wr_dispatcher_hurry(dispatcher);
}

bool wr_dispatcher_help(struct wr_dispatcher *dispatcher, int64_t deadline_ns)
{
    int64_t next_ns;
    if (!wr_dispatcher_visit_by(dispatcher, deadline_ns))
        return false;
    run_round(dispatcher, &next_ns, false, false);
    leave_to_thread(dispatcher);
    wr_deferred_log_leave(&dispatcher->deferred_log);
    wr_lock_leave(&dispatcher->round);
    return true;
}

/* Whether a lane is left to the dispatcher's thread: to start its worker, or to close gates. */
static bool needs_round(const struct wr_router *router)
{
    for (size_t i = 0; i < router->lane_count; i++)
        if (router->lanes[i].waiting || (router->lanes[i].wanted && !router->lanes[i].started))
            return true;
    return false;
}

/* Between the threads of the program there is no order, so one takes its turn only if nobody else wants it. */
bool wr_dispatcher_take_now(struct wr_dispatcher *dispatcher, struct wr_producer *producer, uint64_t from,
                            uint64_t tail, struct wr_lane_now *now)
{
    struct wr_drain *drain = &dispatcher->drain;
    if (atomic_load(&dispatcher->due) || !wr_lock_enter_by(&dispatcher->round, 0))
        return false;
    wr_deferred_log_enter(&dispatcher->deferred_log);
    bool takes = drain->router && !dispatcher->stopping && wr_ring_taken(&producer->ring) == from;
    if (takes) {
        int64_t now_ns = wr_clock_monotonic_ns();
        mark_time(drain);
        drain->now = now;
        wr_drain_ring(drain, producer, tail, now_ns);
        drain->now = NULL;
        if (!now->lane || needs_round(drain->router))
            wr_dispatcher_hurry(dispatcher);
    }
    leave_to_thread(dispatcher);
    wr_deferred_log_leave(&dispatcher->deferred_log);
    wr_lock_leave(&dispatcher->round);
    return takes;
}

bool wr_dispatcher_end_intervals(struct wr_dispatcher *dispatcher, bool also_full)
{
    int64_t now_ns = wr_clock_monotonic_ns(), next_ns = WR_NEVER;
    if (!dispatcher->drain.router)
        return true;
    bool ended = wr_router_end_all(dispatcher->drain.router, dispatcher->drain.registry, also_full, now_ns);
    claim_workers(dispatcher, now_ns, &next_ns);
    return ended;
}

struct wr_router *wr_dispatcher_switch(struct wr_dispatcher *dispatcher, struct wr_router *router)
{
    struct wr_router *before = dispatcher->drain.router;
    int64_t next_ns;
    /* After the barrier each call either sees the gate as it is now, or its values are seen by the round.
     * Otherwise a value that was added before the change could be taken by the new router, while later ones
     * were counted as unrouted by the old gate. */
    wr_router_reconsider(dispatcher->drain.registry);
    wr_membarrier();
    int64_t switched_ns = wr_clock_wall_ns(); /* before all values that the new router takes */
    wr_dispatcher_round(dispatcher, &next_ns);
    if (before) {
        wr_router_end_changed(before, router, dispatcher->drain.registry, wr_clock_monotonic_ns());
        wr_router_seal(before, wr_clock_monotonic_ns());
    }
    dispatcher->drain.router = router;
    dispatcher->drain.switched_ns = switched_ns;
    wr_segment_pool_set(&dispatcher->drain.pool, (uint32_t)router->lane_count + 2);
    wr_router_adopt_groups(router, dispatcher->drain.registry, dispatcher->running);
    if (before && dispatcher->running) /* else there are none, and the groups are cold */
        wr_router_take_over_totals(router, before, dispatcher->drain.registry);
    return before;
}

void wr_dispatcher_end_series(struct wr_dispatcher *dispatcher, const uint32_t *series, size_t count)
{
    enum { FEW = 16 }; /* whose cells are found sooner than all are looked through */
    struct wr_drain *drain = &dispatcher->drain;
    int64_t next_ns;
    for (size_t i = 0; drain->router && count <= FEW && i < count; i++)
        take_cells(dispatcher, series[i]);
    run_round(dispatcher, &next_ns, true, count > FEW);
    for (size_t i = 0; i < count; i++) {
        struct weir_metric *metric = wr_registry_series(drain->registry, series[i]);
        if (wr_registry_is_shared(metric))
            continue;
        wr_series_end(drain->registry, metric);
        if (drain->router)
            wr_router_end_series(drain->router, series[i]);
    }
}

void wr_dispatcher_add(struct wr_dispatcher *dispatcher, const weir_sample *sample)
{
    wr_drain_add(&dispatcher->drain, sample);
    wr_drain_commit(&dispatcher->drain, NULL, 0);
}

/* ---- The thread ------------------------------------------------------------------------------ */

static void sleep_until(struct wr_dispatcher *dispatcher, int64_t next_ns, bool nap)
{
    int64_t timeout_ns = next_ns == WR_NEVER ? WR_NEVER : next_ns - wr_clock_monotonic_ns();
    if (nap && timeout_ns > NAP_US * WR_NS_PER_US)
        timeout_ns = NAP_US * WR_NS_PER_US;
    wr_wakeup_prepare(&dispatcher->wakeup);
    /* pairs with the push in wr_dispatcher_wake: it pushes and then sends the wakeup; we prepare and then load
     */
    if (!nap && atomic_load(&dispatcher->woken))
        timeout_ns = 0;
    wr_wakeup_wait(&dispatcher->wakeup, timeout_ns > 0 ? timeout_ns : 0);
}

static void begin_thread(struct wr_dispatcher *dispatcher)
{
    wr_lock_enter(&dispatcher->round);
    dispatcher->thread = pthread_self();
    dispatcher->has_thread = true;
    wr_lock_leave(&dispatcher->round);
}

static void *run(void *argument)
{
    struct wr_dispatcher *dispatcher = argument;
    wr_thread_set_name("weir");
    wr_producers_mark_own();
    begin_thread(dispatcher);
    for (;;) {
        int64_t next_ns;
        take_turn(dispatcher);
        if (dispatcher->stopping)
            break;
        wr_deferred_log_enter(&dispatcher->deferred_log);
        run_round(dispatcher, &next_ns, true, false);
        bool nap = dispatcher->active_count > 0;
        wr_dispatcher_leave(dispatcher);
        sleep_until(dispatcher, next_ns, nap);
    }
    dispatcher->running = false;
    wr_condition_wake(&dispatcher->ended);
    wr_lock_leave(&dispatcher->round);
    return NULL;
}

bool wr_dispatcher_start(struct wr_dispatcher *dispatcher)
{
    if (dispatcher->running)
        return true;
    int64_t now_ns = wr_clock_monotonic_ns();
    if (dispatcher->stopping || now_ns < dispatcher->start_again_ns)
        return false;
    dispatcher->start_again_ns = now_ns + START_AGAIN_S * WR_NS_PER_S;
    dispatcher->running = dispatcher->starting = true;
    return true;
}

/* Caller has left the round. */
static void start_thread(struct wr_dispatcher *dispatcher)
{
    pthread_t thread;
    if (wr_thread_start(run, dispatcher, &thread))
        return;
    wr_lock_enter(&dispatcher->round);
    dispatcher->running = false;
    wr_condition_wake(&dispatcher->ended);
    wr_lock_leave(&dispatcher->round);
}

void wr_dispatcher_stop(struct wr_dispatcher *dispatcher, int64_t deadline_ns)
{
    sigset_t signals;
    wr_signals_block(&signals);
    if (wr_dispatcher_visit_by(dispatcher, deadline_ns)) {
        dispatcher->stopping = true;
        wr_wakeup_send(&dispatcher->wakeup);
        wr_dispatcher_leave(dispatcher);
    }
    wr_signals_restore(&signals);
}

/* Caller holds the round lock. Waits for the end of the thread. Returns whether it has to be joined. */
static bool await_end(struct wr_dispatcher *dispatcher, int64_t deadline_ns, const sigset_t *signals)
{
    /* while this thread waits, others may hold the round lock */
    wr_deferred_log_leave(&dispatcher->deferred_log);
    while (dispatcher->running && wr_clock_monotonic_ns() < deadline_ns)
        wr_condition_wait_open(&dispatcher->ended, &dispatcher->round, deadline_ns, signals);
    wr_deferred_log_enter(&dispatcher->deferred_log);
    bool joins = dispatcher->has_thread && !dispatcher->running;
    if (joins)
        dispatcher->has_thread = false;
    return joins;
}

void wr_dispatcher_join(struct wr_dispatcher *dispatcher, int64_t deadline_ns)
{
    sigset_t signals;
    wr_signals_block(&signals);
    bool ended = wr_dispatcher_visit_by(dispatcher, deadline_ns);
    if (ended) {
        ended = await_end(dispatcher, deadline_ns, &signals);
        wr_dispatcher_leave(dispatcher);
    }
    wr_signals_restore(&signals);
    if (ended && !wr_thread_join_by(dispatcher->thread, deadline_ns))
        pthread_detach(dispatcher->thread);
}
