#include "dispatcher.h"

#include <string.h>
#include <time.h>

#include "clock.h"
#include "common.h"
#include "futex.h"
#include "membarrier.h"
#include "ring.h"
#include "signals.h"
#include "thread.h"

enum {
    QUIET_MS = 10,   /* without anything new for so long, a ring is parked */
    NAP_US = 500,    /* between rounds while rings are active: values come together meanwhile */
    GIVE_BACK = 512, /* slots that are given back to a writer at a time */
    SLIGHT_STEP_NS =
        1000000, /* time stamps of one thread that go back by less are held back; more is a step of the clock */
    START_AGAIN_S = 1,
};

void wr_dispatcher_init(struct wr_dispatcher *dispatcher, struct wr_registry *registry,
                        const struct wr_crew *crew)
{
    dispatcher->registry = registry;
    dispatcher->crew = crew;
    dispatcher->still_ns = WR_DISPATCHER_REAL_TIME;
    wr_timeline_start(&dispatcher->timeline);
}

/* ---- The round lock -------------------------------------------------------------------------- */

bool wr_dispatcher_visit_by(struct wr_dispatcher *dispatcher, int64_t deadline_ns)
{
    atomic_fetch_add(&dispatcher->visitors, 1);
    bool entered = wr_lock_enter_by(&dispatcher->round, deadline_ns);
    atomic_fetch_sub(&dispatcher->visitors, 1);
    return entered;
}

void wr_dispatcher_visit(struct wr_dispatcher *dispatcher)
{
    wr_dispatcher_visit_by(dispatcher, WR_NEVER);
}

void wr_dispatcher_leave(struct wr_dispatcher *dispatcher)
{
    wr_lock_leave(&dispatcher->round);
}

/* The lock itself is not fair, and the dispatcher's thread would take it again at once. */
static void let_visitors_in(struct wr_dispatcher *dispatcher)
{
    while (atomic_load(&dispatcher->visitors))
        nanosleep(&(struct timespec){.tv_nsec = 20 * WR_NS_PER_US}, NULL);
}

/* ---- Taking records -------------------------------------------------------------------------- */

/* An event in a ring. */
struct event {
    uint64_t at, end; /* positions */
    uint32_t samples;
    uint16_t flags; /* of all its samples together */
};

static struct event measure(const struct wr_ring *ring, uint64_t at)
{
    struct event event = {.at = at, .end = at};
    const weir_sample *sample;
    do {
        sample = wr_ring_slot(ring, event.end);
        event.flags |= sample->flags;
        event.end += 1 + (sample->flags & WR_RING_TEXT ? wr_ring_text_slots(sample->note) : 0);
        event.samples++;
    } while (sample->flags & WEIR_SAMPLE_MORE);
    return event;
}

/* Two pairs of the timeline may disagree by some nanoseconds, and so may the timeline and the wall clock when
 * settings.clock changes: within a thread, time does not run backwards for that. A time that the program gave
 * is its own affair. */
static int64_t stamp(const struct wr_dispatcher *dispatcher, struct wr_ring *ring, const weir_sample *sample)
{
    int64_t time_ns = sample->time_ns;
    if (WR_LIKELY(sample->flags & WR_RING_TICKS))
        time_ns = wr_timeline_wall_ns(&dispatcher->timeline, (uint64_t)time_ns);
    else if (!(sample->flags & WR_RING_WALL))
        return time_ns;
    if (WR_UNLIKELY(dispatcher->still_ns != WR_DISPATCHER_REAL_TIME))
        return dispatcher->still_ns;
    if (time_ns < ring->last_ns && ring->last_ns - time_ns < SLIGHT_STEP_NS)
        return ring->last_ns;
    ring->last_ns = time_ns;
    return time_ns;
}

/* Metadata lies in the slots behind the sample, which may begin at the ring's end and go on at its beginning.
 */
static uint32_t take_text(struct wr_dispatcher *dispatcher, const struct wr_ring *ring, uint64_t at,
                          uint32_t length, struct wr_segment *segment)
{
    for (uint32_t done = 0; done < length; at++) {
        uint32_t part = length - done < sizeof(weir_sample) ? length - done : (uint32_t)sizeof(weir_sample);
        memcpy(dispatcher->text + done, wr_ring_slot(ring, at), part);
        done += part;
    }
    return wr_segment_add_note(segment, dispatcher->text, length);
}

static void copy_event(struct wr_dispatcher *dispatcher, struct wr_ring *ring, const struct event *event,
                       struct wr_feed *feed, weir_sample *to)
{
    for (uint64_t at = event->at; at < event->end; at++, to++) {
        const weir_sample *from = wr_ring_slot(ring, at);
        *to = *from;
        to->flags = from->flags & (uint16_t)(~WR_RING_FLAGS | WR_RING_NO_WAIT);
        to->reserved = 0;
        to->time_ns = stamp(dispatcher, ring, from);
        if (from->flags & WR_RING_TEXT) {
            to->note = take_text(dispatcher, ring, at + 1, from->note, feed->segment);
            at += wr_ring_text_slots(from->note);
        }
    }
}

/* One sample without anything special, to one feed: by far the most frequent kind. */
static inline void copy_plain(struct wr_dispatcher *dispatcher, struct wr_ring *ring, const weir_sample *from,
                              weir_sample *to)
{
    *to = *from;
    to->flags = from->flags & WEIR_SAMPLE_CUMULATIVE;
    to->time_ns = stamp(dispatcher, ring, from);
}

/* The number comes with the sample: the desk's may be of a later call already, when the one for this sample was
 * given up before it was taken. */
static void settle_ticket(struct wr_producer *producer, uint64_t at, struct wr_route *route, int64_t now_ns)
{
    struct wr_ticket ticket = {&producer->desk, wr_ring_slot(&producer->ring, at)->reserved};
    wr_ticket_expect(ticket, route->sync_lanes);
    for (size_t i = 0; i < route->feed_count; i++)
        wr_feed_offer(route->feeds[i], ticket, now_ns);
}

/* It came before it was known that nobody would listen. */
static void count_unheard(struct wr_dispatcher *dispatcher, uint32_t series, uint64_t samples)
{
    dispatcher->unrouted += samples;
    atomic_fetch_add(&wr_registry_series(dispatcher->registry, series)->stream->group->unheard, samples);
}

static void take_event(struct wr_dispatcher *dispatcher, struct wr_producer *producer,
                       const struct event *event, struct wr_route *route, int64_t now_ns)
{
    if (!route->feed_count)
        count_unheard(dispatcher, wr_ring_slot(&producer->ring, event->at)->series, event->samples);
    /* what the calling thread waits for goes in an offer whose last sample it is */
    for (size_t i = 0; i < route->feed_count; i++) {
        struct wr_feed *feed = route->feeds[i];
        weir_sample *to = wr_feed_reserve(feed, event->samples, now_ns);
        if (!to)
            continue;
        copy_event(dispatcher, &producer->ring, event, feed, to);
        wr_feed_added(feed, event->samples);
        feed->no_wait |= (event->flags & WR_RING_NO_WAIT) != 0;
    }
    if (event->flags & WR_RING_SYNC)
        settle_ticket(producer, event->at, route, now_ns);
}

static void give_back(struct wr_ring *ring, uint64_t position)
{
    if (!wr_ring_give_back(ring, position))
        return;
    atomic_fetch_add_explicit(&ring->room, 1, memory_order_release);
    wr_futex_wake(&ring->room, 1);
}

/* Takes what was published before `tail`. Answers how many samples that were. */
static uint64_t take_ring(struct wr_dispatcher *dispatcher, struct wr_producer *producer, uint64_t tail,
                          int64_t now_ns)
{
    enum { SPECIAL = WEIR_SAMPLE_MORE | WR_RING_TEXT | WR_RING_SYNC | WR_RING_NO_WAIT };
    struct wr_ring *ring = &producer->ring;
    uint64_t head = wr_ring_taken(ring), samples = 0, given = head;
    uint32_t series = 0;
    struct wr_route *route = NULL;
    while (head < tail) {
        const weir_sample *sample = wr_ring_slot(ring, head);
        if (!route || sample->series != series) {
            series = sample->series;
            route = wr_router_series_route(dispatcher->router, dispatcher->registry, series);
        }
        if (!(sample->flags & SPECIAL) && route->feed_count == 1) {
            weir_sample *to = wr_feed_reserve(route->feeds[0], 1, now_ns);
            if (to) {
                copy_plain(dispatcher, ring, sample, to);
                wr_feed_added(route->feeds[0], 1);
            }
            samples++;
            head++;
        } else {
            struct event event = measure(ring, head);
            take_event(dispatcher, producer, &event, route, now_ns);
            ring->text_slots += event.end - event.at - event.samples;
            samples += event.samples;
            head = event.end;
        }
        if (head - given >= GIVE_BACK)
            give_back(ring, given = head);
    }
    if (head != given)
        give_back(ring, head);
    return samples;
}

/* ---- Rings that sleep and wake --------------------------------------------------------------- */

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

/* Whether a ring has been quiet for so long that it may be parked. */
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

/* After the barrier: whether nothing came in before the writer could see that it has to say so. */
static bool stays_parked(struct wr_ring *ring)
{
    if (atomic_load(&ring->tail) == wr_ring_taken(ring))
        return true;
    /* it came in. Whoever gets the 1 watches the ring: we here, or the writer has pushed it on the stack
     * already */
    return atomic_exchange_explicit(&ring->parked, 0, memory_order_relaxed) == 0;
}

/* Parks the rings that have been quiet. A writer publishes and then looks whether it is parked; we park and
 * then look whether it has published. The barrier stands for the writer's fence between both, so that not both
 * miss the other. */
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
        wr_segment_pool_trim(&dispatcher->pool);
}

void wr_dispatcher_wake(struct wr_dispatcher *dispatcher, struct wr_producer *producer)
{
    /* acquire: pairs with the release in park_quiet. With the 1 the ring's place on the stack changes hands:
     * the dispatcher read next_active when it took the ring off, and we are about to write it */
    if (!atomic_exchange_explicit(&producer->ring.parked, 0, memory_order_acquire))
        return;
    producer->next_active = atomic_load_explicit(&dispatcher->woken, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&dispatcher->woken, &producer->next_active, producer))
        ;
    wr_bell_ring(&dispatcher->bell);
}

void wr_dispatcher_hurry(struct wr_dispatcher *dispatcher)
{
    wr_bell_ring(&dispatcher->bell);
}

void wr_dispatcher_wait_room(struct wr_dispatcher *dispatcher, struct wr_producer *producer, uint64_t count,
                             int64_t timeout_ns)
{
    struct wr_ring *ring = &producer->ring;
    uint32_t room = atomic_load_explicit(&ring->room, memory_order_acquire);
    bool starves = wr_ring_starve(ring, count);
    wr_bell_ring(&dispatcher->bell);
    if (starves)
        wr_futex_wait(&ring->room, room, timeout_ns);
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

static uint64_t take_all(struct wr_dispatcher *dispatcher, int64_t now_ns, bool *quiet)
{
    uint64_t taken = 0;
    for (uint32_t i = 0; i < dispatcher->active_count; i++) {
        struct wr_producer *producer = dispatcher->active[i];
        uint64_t samples = take_ring(dispatcher, producer, wr_ring_published(&producer->ring), now_ns);
        quiet[i] = is_quiet(&producer->ring, samples > 0, now_ns);
        taken += samples;
    }
    return taken;
}

/* Lanes have workers as soon as they have something to do. */
static void start_workers(struct wr_dispatcher *dispatcher, int64_t now_ns)
{
    struct wr_router *router = dispatcher->router;
    for (size_t i = 0; i < router->lane_count; i++) {
        struct wr_feed_lane *lane = &router->lanes[i];
        if (lane->started || !lane->wanted || now_ns < lane->start_again_ns)
            continue;
        lane->started = wr_worker_start(lane->lane, dispatcher->crew);
        lane->start_again_ns = now_ns + START_AGAIN_S * WR_NS_PER_S;
    }
}

uint64_t wr_dispatcher_round(struct wr_dispatcher *dispatcher, int64_t *next_ns)
{
    bool quiet[WR_PRODUCERS_MOST + 1];
    int64_t now_ns = wr_clock_monotonic_ns();
    *next_ns = WR_NEVER;
    if (!dispatcher->router)
        return 0;
    adopt_woken(dispatcher);
    wr_timeline_mark(&dispatcher->timeline);
    uint64_t taken = take_all(dispatcher, now_ns, quiet);
    wr_router_offer(dispatcher->router, now_ns);
    start_workers(dispatcher, now_ns);
    *next_ns = wr_router_check(dispatcher->router, now_ns);
    if (dispatcher->tend)
        dispatcher->tend(dispatcher->ctx, now_ns, next_ns);
    park_quiet(dispatcher, quiet);
    return taken;
}

void wr_dispatcher_switch(struct wr_dispatcher *dispatcher, struct wr_router *router)
{
    int64_t next_ns;
    /* The barrier makes each call see the gate as it is now, or its values be seen by the round: otherwise one
     * that came before there was a gate could be taken by the new router, and those behind it be refused by the
     * old one. */
    wr_router_reconsider(dispatcher->registry);
    wr_membarrier();
    wr_dispatcher_round(dispatcher, &next_ns);
    wr_router_free(dispatcher->router, wr_clock_monotonic_ns());
    dispatcher->router = router;
    wr_segment_pool_set(&dispatcher->pool, (uint32_t)router->lane_count + 2);
    wr_router_adopt_groups(router, dispatcher->registry, dispatcher->running);
}

void wr_dispatcher_add(struct wr_dispatcher *dispatcher, const weir_sample *samples, uint32_t count)
{
    int64_t now_ns = wr_clock_monotonic_ns();
    const struct wr_route *route =
        wr_router_series_route(dispatcher->router, dispatcher->registry, samples[0].series);
    for (size_t i = 0; i < route->feed_count; i++) {
        weir_sample *to = wr_feed_reserve(route->feeds[i], count, now_ns);
        if (!to)
            continue;
        memcpy(to, samples, count * sizeof *samples);
        wr_feed_added(route->feeds[i], count);
    }
}

/* ---- The thread ------------------------------------------------------------------------------ */

static void sleep_until(struct wr_dispatcher *dispatcher, int64_t next_ns, bool nap)
{
    int64_t timeout_ns = next_ns == WR_NEVER ? WR_NEVER : next_ns - wr_clock_monotonic_ns();
    if (nap && timeout_ns > NAP_US * WR_NS_PER_US)
        timeout_ns = NAP_US * WR_NS_PER_US;
    wr_bell_prepare(&dispatcher->bell);
    /* pairs with the push in wr_dispatcher_wake: it pushes and then rings; we prepare and then look */
    if (!nap && atomic_load(&dispatcher->woken))
        timeout_ns = 0;
    wr_bell_sleep(&dispatcher->bell, timeout_ns > 0 ? timeout_ns : 0);
}

static void *run(void *argument)
{
    struct wr_dispatcher *dispatcher = argument;
    wr_thread_set_name("weir");
    wr_producers_adopt_as_own(dispatcher->crew->producers);
    for (;;) {
        int64_t next_ns;
        let_visitors_in(dispatcher);
        wr_lock_enter(&dispatcher->round);
        if (dispatcher->stopping)
            break;
        wr_dispatcher_round(dispatcher, &next_ns);
        bool nap = dispatcher->active_count > 0;
        wr_lock_leave(&dispatcher->round);
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
    dispatcher->running = wr_thread_start(run, dispatcher, &dispatcher->thread);
    return dispatcher->running;
}

/* Inside a visit: has the thread come to its end. Answers whether there is one to be joined. */
static bool end_thread(struct wr_dispatcher *dispatcher, int64_t deadline_ns, const sigset_t *signals)
{
    bool ran = dispatcher->running && !dispatcher->stopping;
    dispatcher->stopping = true;
    wr_bell_ring(&dispatcher->bell);
    while (dispatcher->running && wr_clock_monotonic_ns() < deadline_ns)
        wr_condition_wait_open(&dispatcher->ended, &dispatcher->round, deadline_ns, signals);
    return ran && !dispatcher->running;
}

void wr_dispatcher_stop(struct wr_dispatcher *dispatcher, int64_t deadline_ns)
{
    sigset_t signals;
    wr_signals_block(&signals);
    bool ended = wr_dispatcher_visit_by(dispatcher, deadline_ns);
    if (ended) {
        ended = end_thread(dispatcher, deadline_ns, &signals);
        wr_dispatcher_leave(dispatcher);
    }
    wr_signals_restore(&signals);
    if (ended && !wr_thread_join_by(dispatcher->thread, deadline_ns))
        pthread_detach(dispatcher->thread);
}
