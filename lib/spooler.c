#include "spooler.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "common.h"
#include "error.h"
#include "spool.h"
#include "spooling.h"

enum { GRACE_S = 1 };

/* ---- To the disk and back -------------------------------------------------------------------- */

/* What is taken along. */
struct trip {
    struct wr_lane *lane;
    struct wr_spool *spool; /* NULL: no memory for one */
    char *place;            /* the same */
    struct wr_label_set *labels;
};

static bool set_out(struct trip *trip, struct wr_lane *lane)
{
    struct wr_stash *stash = &lane->stash;
    *trip = (struct trip){.lane = lane, .labels = lane->labels};
    wr_labels_hold(trip->labels);
    trip->place = stash->place ? strdup(stash->place) : NULL;
    if (!stash->spool && trip->place)
        stash->spool = wr_spool_new(lane->name, stash->registry);
    trip->spool = stash->spool;
    stash->busy = true;
    wr_lane_leave(lane);
    return trip->place && trip->spool;
}

static void come_home(struct trip *trip)
{
    struct wr_lane *lane = trip->lane;
    struct wr_spooling_state state = {0};
    if (trip->spool)
        state = (struct wr_spooling_state){trip->spool->shelf.bytes, wr_spool_front(trip->spool)};
    wr_labels_drop(trip->labels);
    free(trip->place);
    wr_lock_enter(&lane->lock);
    lane->stash.busy = false;
    wr_spooling_see(lane, &state);
    wr_condition_wake(&lane->progress);
    wr_condition_wake(&lane->work);
}

void wr_spooler_move(struct wr_lane *lane)
{
    struct trip trip;
    struct wr_error error = {0};
    const struct wr_range range = lane->stash.moving;
    struct wr_spool_terms terms = {
        .limit = lane->settings.spool_limit,
        .drop_oldest = lane->settings.overflow == WR_OVERFLOW_DROP_OLDEST,
        .first_in_use = lane->stash.fetched.segment || lane->flight.stashed,
    };
    struct wr_spool_count dropped = {0};
    enum wr_spool_result result = WR_SPOOL_FAILED;
    if (set_out(&trip, lane)) {
        terms.place = trip.place;
        result = wr_spool_put(trip.spool, &terms, &range, trip.labels, &dropped, &error);
    } else {
        wr_error_set(&error, WEIR_ERR_MEMORY, "no memory");
    }
    come_home(&trip);
    int64_t now_ns = wr_clock_monotonic_ns();
    if (dropped.samples)
        wr_spooling_lost(lane, WEIR_DROPPED_FULL, dropped.samples, dropped.own);
    if (!lane->stash.moving.segment) /* it took too long: they are counted as dropped, wherever they are */
        return;
    if (result == WR_SPOOL_OK)
        wr_spooling_moved(lane, now_ns);
    else
        wr_spooling_failed(lane, result == WR_SPOOL_FULL, error.text, now_ns);
}

void wr_spooler_search(struct wr_lane *lane)
{
    struct trip trip;
    struct wr_error error = {0};
    struct wr_spool_found found = {0};
    bool looked = set_out(&trip, lane) && wr_spool_adopt(trip.spool, trip.place, &found, &error);
    come_home(&trip);
    int64_t now_ns = wr_clock_monotonic_ns();
    if (looked)
        wr_spooling_found(lane, found.samples, found.more, now_ns);
    else
        wr_spooling_not_found(lane, error.code ? error.text : "no memory", now_ns);
    wr_spooling_say_damage(lane, 0, found.kept_bad);
}

/* There is nothing left of what should have been there. */
static void give_up(struct wr_lane *lane)
{
    wr_spooling_say_damage(lane, lane->stash.samples, false);
    wr_spooling_lost(lane, WEIR_DROPPED_CORRUPT, lane->stash.samples, lane->stash.own);
}

void wr_spooler_settle(struct wr_lane *lane)
{
    struct trip trip;
    uint32_t settled = lane->stash.settled;
    if (!settled || lane->stash.busy || lane->held)
        return;
    lane->stash.settled = 0;
    set_out(&trip, lane);
    bool kept = wr_spool_settle(trip.spool, settled);
    come_home(&trip);
    wr_spooling_say_damage(lane, 0, kept);
}

void wr_spooler_fetch(struct wr_lane *lane)
{
    struct trip trip;
    struct wr_error error = {0};
    struct wr_spool_want want = {lane->settings.batch, lane->settings.batch_bytes, lane->labels};
    struct wr_spool_batch batch = {0};
    enum wr_spool_result result = WR_SPOOL_FAILED;
    if (lane->stash.settled) { /* what was withheld would be read again */
        wr_spooler_settle(lane);
        return;
    }
    set_out(&trip, lane);
    if (trip.spool)
        result = wr_spool_fetch(trip.spool, &want, &batch, &error);
    come_home(&trip);
    if (batch.lost.samples)
        wr_spooling_lost(lane, WEIR_DROPPED_CORRUPT, batch.lost.samples, batch.lost.own);
    wr_spooling_say_damage(lane, batch.lost.samples, batch.kept_bad);
    if (batch.range.segment)
        wr_spooling_fetched(lane, &batch.range, batch.labels, batch.own);
    else if (result != WR_SPOOL_OK)
        wr_spooling_not_fetched(lane, trip.spool ? error.text : "no memory", wr_clock_monotonic_ns());
    else
        give_up(lane);
}

void wr_spooler_tidy(struct wr_lane *lane)
{
    struct trip trip;
    if (!lane->stash.spool || lane->stash.busy)
        return;
    set_out(&trip, lane);
    wr_spool_tidy(trip.spool);
    come_home(&trip);
}

/* ---- The very end ---------------------------------------------------------------------------- */

/* A write beyond the limit of file sizes raises a signal that would end the program. */
static void swallow_signal(bool was_pending)
{
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGXFSZ);
    if (!was_pending)
        sigtimedwait(&only, NULL, &(struct timespec){0});
}

static bool is_pending(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

/* Whether the worker will see to it itself, if it gets the time. */
static bool is_worker_at_hand(const struct wr_lane *lane)
{
    return lane->stash.busy || (lane->worker == WR_WORKER_RUNNING && !lane->in_callback && !lane->flight.lent);
}

static void wait_for_worker(struct wr_lane *lane, int64_t deadline_ns, const sigset_t *signals)
{
    while (lane->worker == WR_WORKER_RUNNING && wr_clock_monotonic_ns() < deadline_ns)
        wr_condition_wait_open(&lane->progress, &lane->lock, deadline_ns, signals);
    int64_t grace_ns = wr_clock_monotonic_ns() + GRACE_S * WR_NS_PER_S;
    while (wr_spooling_has_memory(lane) && lane->ending == WR_LANE_LIVES && is_worker_at_hand(lane) &&
           wr_clock_monotonic_ns() < grace_ns)
        wr_condition_wait_open(&lane->progress, &lane->lock, grace_ns, signals);
}

void wr_spooler_save(struct wr_lane *lane, int64_t deadline_ns)
{
    sigset_t signals;
    wr_lane_enter_from_outside(lane, &signals);
    if (lane->settings.spool_limit) {
        bool was_pending = is_pending();
        wait_for_worker(lane, deadline_ns, &signals);
        while (wr_spooling_prepare_last(lane, wr_clock_monotonic_ns()))
            wr_spooler_move(lane);
        swallow_signal(was_pending);
    }
    wr_lane_leave_to_outside(lane, &signals);
}

void wr_spooler_leave(struct wr_lane *lane)
{
    struct trip trip;
    sigset_t signals;
    wr_lane_enter_from_outside(lane, &signals);
    if (lane->stash.spool && !lane->stash.busy) {
        set_out(&trip, lane);
        wr_spool_leave(trip.spool);
        come_home(&trip);
    }
    wr_lane_leave_to_outside(lane, &signals);
}

void wr_spooler_abandon(const struct wr_lane *lane)
{
    if (lane->stash.spool)
        wr_spool_abandon(lane->stash.spool);
}
