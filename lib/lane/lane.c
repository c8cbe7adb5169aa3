#include "lane/lane.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/common.h"
#include "text/error.h"
#include "producer/ring.h"
#include "os/signals.h"

enum { SAVING_S = 1 };

struct wr_lane *wr_lane_new(const char *name, struct wr_log *log, struct wr_wakeup *wakeup,
                            struct wr_deferred_log *words)
{
    struct wr_lane *lane = calloc(1, sizeof *lane);
    char *copy = strdup(name);
    if (!lane || !copy) {
        free(lane);
        free(copy);
        return NULL;
    }
    lane->name = copy;
    lane->log = log;
    lane->wakeup = wakeup;
    lane->words = words;
    lane->ending = WR_LANE_LIVES;
    lane->kinds = WEIR_KINDS_DOUBLE | WEIR_KINDS_INT;
    return lane;
}

void wr_lane_free_unused(struct wr_lane *lane)
{
    if (!lane)
        return;
    wr_queue_fini(&lane->queue);
    wr_spool_state_fini(&lane->spool_state);
    wr_sync_waiters_fini(&lane->waiting);
    free((char *)lane->name);
    free(lane);
}

/* ---- Messages -------------------------------------------------------------------------------- */

void wr_lane_say(struct wr_lane *lane, int level, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    wr_deferred_slots_add(&lane->remarks, level, format, arguments);
    va_end(arguments);
}

static void leave_and_say(struct wr_lane *lane)
{
    struct wr_deferred_slots remarks = lane->remarks;
    lane->remarks.count = 0;
    lane->speaking++;
    wr_lock_leave(&lane->lock);
    wr_deferred_slots_write(&remarks, lane->log, lane->name);
    wr_lock_enter(&lane->lock);
    lane->speaking--;
    wr_condition_wake(&lane->progress);
    wr_lock_leave(&lane->lock);
}

void wr_lane_leave(struct wr_lane *lane)
{
    bool in_round = lane->remarks.count && lane->words && wr_deferred_log_is_holder(lane->words);
    if (WR_UNLIKELY(in_round))
        wr_deferred_slots_pass_on(&lane->remarks, lane->words, lane->name);
    if (WR_UNLIKELY(lane->remarks.count && !in_round))
        leave_and_say(lane);
    else
        wr_lock_leave(&lane->lock);
}

/* ---- What is there --------------------------------------------------------------------------- */

const struct wr_range *wr_lane_flying(const struct wr_lane *lane)
{
    const struct wr_flight *flight = &lane->flight;
    return flight->range.segment && !flight->disowned && !flight->stashed ? &flight->range : NULL;
}

uint64_t wr_lane_queued(const struct wr_lane *lane)
{
    return lane->queue.samples + lane->spool_state.moving.count +
           (wr_lane_flying(lane) ? wr_lane_flying(lane)->count : 0);
}

uint64_t wr_lane_queued_bytes(const struct wr_lane *lane)
{
    return lane->queue.bytes + lane->spool_state.moving.bytes +
           (wr_lane_flying(lane) ? wr_lane_flying(lane)->bytes : 0);
}

uint64_t wr_lane_front_in_memory(const struct wr_lane *lane)
{
    if (wr_lane_flying(lane))
        return wr_lane_flying(lane)->sequence;
    if (lane->spool_state.moving.segment)
        return lane->spool_state.moving.sequence;
    return wr_queue_is_empty(&lane->queue) ? lane->position : wr_queue_front(&lane->queue)->sequence;
}

uint64_t wr_lane_front(const struct wr_lane *lane)
{
    uint64_t front = wr_lane_front_in_memory(lane);
    return lane->spool_state.own && lane->spool_state.front < front ? lane->spool_state.front : front;
}

/* ---- Calls that wait ------------------------------------------------------------------------- */

/* What was dropped need not be the oldest: calls that wait for what is before it go on waiting. */
static void answer_dropped(struct wr_lane *lane, const struct wr_range *range, int answer)
{
    wr_sync_waiters_answer(&lane->waiting, range->sequence, range->sequence + range->count, answer);
}

void wr_lane_answer(struct wr_lane *lane, uint64_t sequence, int answer)
{
    wr_sync_waiters_answer(&lane->waiting, 0, sequence, answer);
}

void wr_lane_tell(struct wr_lane *lane, int error)
{
    lane->waiting.told = error;
    if (!error)
        return;
    wr_lane_answer(lane, UINT64_MAX, error);
    wr_condition_wake(&lane->progress);
}

/* ---- Dropping -------------------------------------------------------------------------------- */

void wr_lane_count_drop(struct wr_lane *lane, enum weir_drop why, uint64_t count)
{
    lane->dropped[why] += count;
}

/* What the end of the process would cost is left to the next one, where there is a journal; everything else is
 * done with. Answers what calls that wait for it are told. */
static int give_up(struct wr_lane *lane, const struct wr_range *range, enum weir_drop why)
{
    if (why == WEIR_DROPPED_SHUTDOWN && wr_segment_leave(range->segment)) {
        lane->left += range->count;
        return WEIR_ERR_SPOOLED;
    }
    wr_range_settle(range, range->count);
    wr_lane_count_drop(lane, why, range->count);
    return why == WEIR_DROPPED_FULL ? WEIR_ERR_FULL : WEIR_ERR_DROPPED;
}

static void drop_range(struct wr_lane *lane, const struct wr_range *range, enum weir_drop why)
{
    answer_dropped(lane, range, give_up(lane, range, why));
    wr_segment_drop(range->segment);
}

static void drop_queue(struct wr_lane *lane, enum weir_drop why)
{
    while (!wr_queue_is_empty(&lane->queue)) {
        struct wr_range range = wr_queue_take(&lane->queue, UINT32_MAX, UINT64_MAX);
        drop_range(lane, &range, why);
    }
}

/* Whoever is at the disk with it just now keeps its reference, as there is no telling when he comes back. */
static void drop_moving(struct wr_lane *lane, enum weir_drop why)
{
    struct wr_range moving = lane->spool_state.moving;
    lane->spool_state.moving = (struct wr_range){0};
    if (lane->spool_state.busy && moving.segment)
        wr_segment_hold(moving.segment);
    if (moving.segment)
        drop_range(lane, &moving, why);
}

/* What is on disk stays there. */
static void put_back_stashed(struct wr_lane *lane)
{
    wr_spool_state_forget_fetched(&lane->spool_state);
    if (!lane->flight.stashed)
        return;
    lane->flight.disowned = lane->flight.lent;
    if (lane->flight.lent)
        return;
    wr_segment_drop(lane->flight.range.segment);
    lane->flight = (struct wr_flight){0};
}

void wr_lane_drop_all(struct wr_lane *lane, enum weir_drop why)
{
    if (wr_lane_flying(lane) && lane->flight.lent) {
        /* the reference stays until the worker comes back. in_callback would not do: it is false while the
         * handler waits inside emit, and true while it opens, with nothing lent to it */
        answer_dropped(lane, &lane->flight.range, give_up(lane, &lane->flight.range, why));
        lane->flight.disowned = true;
    } else if (wr_lane_flying(lane)) {
        drop_range(lane, &lane->flight.range, why);
        lane->flight.range.segment = NULL;
    }
    drop_moving(lane, why);
    put_back_stashed(lane);
    drop_queue(lane, why);
    wr_lane_answer(lane, UINT64_MAX, WEIR_ERR_DROPPED);
}

/* ---- Offering -------------------------------------------------------------------------------- */

static void push(struct wr_lane *lane, const struct wr_range *range)
{
    if (wr_queue_push(&lane->queue, range))
        return;
    give_up(lane, range, WEIR_DROPPED_FULL); /* no memory for the queue's own list */
    answer_dropped(lane, range, WEIR_ERR_MEMORY);
}

static bool is_no_wait(const struct wr_range *range)
{
    return range->segment->samples[range->first].flags & WR_RING_NO_WAIT;
}

/* A full lane whose producers wait still takes what was on its way, since they have been told that it is in the
 * ledger; but what weir's own threads add would never end. */
static void push_those_that_wait(struct wr_lane *lane, struct wr_range *range)
{
    while (range->count) {
        struct wr_range event = wr_range_split(range, 1);
        if (is_no_wait(&event))
            give_up(lane, &event, WEIR_DROPPED_REENTRANT);
        else
            push(lane, &event);
        wr_segment_drop(event.segment);
    }
}

/* Takes as much from the front as there is room for, and drops the rest. */
static void push_those_that_fit(struct wr_lane *lane, struct wr_range *range, uint64_t room)
{
    uint32_t fit = wr_range_count_fitting(range, room);
    if (fit) {
        struct wr_range taken = wr_range_split(range, fit);
        push(lane, &taken);
        wr_segment_drop(taken.segment);
    }
    if (!range->count)
        return;
    answer_dropped(lane, range, give_up(lane, range, WEIR_DROPPED_FULL));
}

/* What is in flight is in the handler's hands; the oldest of the others go. */
static void drop_oldest(struct wr_lane *lane)
{
    uint64_t bound = lane->pressure.bound;
    while (wr_lane_queued_bytes(lane) > bound && !wr_queue_is_empty(&lane->queue)) {
        uint64_t excess = wr_lane_queued_bytes(lane) - bound;
        struct wr_range range = wr_queue_take(&lane->queue, UINT32_MAX, excess);
        drop_range(lane, &range, WEIR_DROPPED_FULL);
    }
}

static void take_in(struct wr_lane *lane, struct wr_range *range, const struct wr_offer *offer)
{
    uint64_t room = wr_backpressure_room(&lane->pressure, wr_lane_queued_bytes(lane));
    if (room != UINT64_MAX)
        push_those_that_fit(lane, range, room);
    else if (offer->no_wait && lane->pressure.state == WR_BACKPRESSURE_FULL)
        push_those_that_wait(lane, range);
    else
        push(lane, range);
    if (lane->pressure.overflow == WR_OVERFLOW_DROP_OLDEST)
        drop_oldest(lane);
}

/* Waking costs the dispatcher some microseconds: only when there is something new for the worker to decide. */
static bool must_wake(const struct wr_lane *lane, uint64_t queued_before)
{
    return queued_before == 0 || lane->waiting.count || lane->queue.samples >= lane->settings.batch ||
           lane->queue.bytes >= lane->settings.batch_bytes || lane->pressure.state != WR_BACKPRESSURE_CALM ||
           (lane->settings.spool_limit && lane->queue.bytes >= lane->settings.queue_bytes / 2);
}

static void offer_locked(struct wr_lane *lane, const struct wr_offer *offer, int64_t now_ns)
{
    struct wr_range range = {
        .segment = offer->segment,
        .first = offer->first,
        .count = offer->count,
        .slot = offer->slot,
        .bytes = wr_segment_bytes(offer->segment, offer->first, offer->count),
        .sequence = lane->position,
        .since_ns = now_ns,
    };
    lane->offered += offer->count;
    lane->position += offer->count;
    int ending = lane->no_thread ? WEIR_DROPPED_NO_THREAD : lane->ending;
    if (ending != WR_LANE_LIVES) {
        give_up(lane, &range, (enum weir_drop)ending);
        wr_ticket_answer(offer->ticket, WEIR_ERR_DROPPED);
        return;
    }
    uint64_t queued_before = lane->queue.samples;
    wr_sync_waiters_add(&lane->waiting, lane->position, offer->ticket);
    take_in(lane, &range, offer);
    wr_backpressure_rise(&lane->pressure, wr_lane_queued_bytes(lane), now_ns);
    if (must_wake(lane, queued_before))
        wr_condition_wake(&lane->work);
}

bool wr_lane_offer(struct wr_lane *lane, const struct wr_offer *offer, int64_t now_ns)
{
    wr_lock_enter(&lane->lock);
    offer_locked(lane, offer, now_ns);
    bool full = lane->pressure.state == WR_BACKPRESSURE_FULL;
    wr_lane_leave(lane);
    return full;
}

void wr_lane_refuse(struct wr_lane *lane, uint64_t count, enum weir_drop why)
{
    wr_lock_enter(&lane->lock);
    lane->offered += count;
    lane->position += count;
    wr_lane_count_drop(lane, why, count);
    wr_lane_leave(lane);
}

/* ---- Pressure -------------------------------------------------------------------------------- */

static void ring_if_changed(struct wr_lane *lane, enum wr_backpressure_state before)
{
    if (before != lane->pressure.state && lane->wakeup)
        wr_wakeup_send(lane->wakeup);
}

void wr_lane_moved(struct wr_lane *lane, int64_t now_ns)
{
    enum wr_backpressure_state before = lane->pressure.state;
    wr_backpressure_fall(&lane->pressure, wr_lane_queued_bytes(lane), now_ns);
    ring_if_changed(lane, before);
    wr_condition_wake(&lane->progress);
}

void wr_lane_set(struct wr_lane *lane, const struct wr_lane_settings *settings, int64_t now_ns)
{
    enum wr_backpressure_state before = lane->pressure.state;
    lane->settings = *settings;
    lane->pressure.overflow = settings->overflow;
    lane->pressure.bound = settings->queue_bytes;
    lane->pressure.timeout_ns = settings->block_timeout_ns;
    lane->pressure.state = WR_BACKPRESSURE_CALM;
    wr_backpressure_rise(&lane->pressure, wr_lane_queued_bytes(lane), now_ns);
    ring_if_changed(lane, before);
    wr_backoff_init(&lane->retry, settings->retry_min_ns, settings->retry_max_ns,
                    (uint64_t)now_ns ^ (uintptr_t)lane);
}

static void put_count(char *text, size_t size, uint64_t count, const char *what)
{
    size_t length = strlen(text);
    if (count)
        snprintf(text + length, size - length, "%s%" PRIu64 " %s", length ? ", " : "", count, what);
}

/* What is on disk is not lost; but whoever reads this may have expected it elsewhere. */
static void say_end(struct wr_lane *lane, uint64_t dropped)
{
    char counts[120] = "";
    put_count(counts, sizeof counts, lane->spool_state.samples, "spooled");
    put_count(counts, sizeof counts, lane->left, "left in the journal");
    put_count(counts, sizeof counts, dropped, "dropped");
    if (counts[0])
        wr_lane_say(lane, dropped ? WEIR_LOG_ERROR : WEIR_LOG_WARNING, "%s%s%s; not delivered in time: %s",
                    lane->stop_reason == WEIR_DROPPED_REMOVED ? "configured away" : "shutting down",
                    lane->failing                            ? " while failing: "
                    : lane->in_callback || lane->flight.lent ? " while the handler is busy"
                                                             : "",
                    lane->failing ? lane->reason : "", counts);
}

void wr_lane_declare_end(struct wr_lane *lane)
{
    uint64_t left = wr_lane_queued(lane);
    enum wr_backpressure_state before = lane->pressure.state;
    uint64_t kept = lane->left;
    lane->ending = lane->stop_reason;
    wr_lane_drop_all(lane, (enum weir_drop)lane->stop_reason);
    say_end(lane, left - (lane->left - kept));
    lane->pressure.state = WR_BACKPRESSURE_CALM;
    ring_if_changed(lane, before);
    wr_condition_wake(&lane->progress);
}

/* When a lane whose worker has not come to an end is given up; one with a spool has some more time for that. */
static int64_t end_time(const struct wr_lane *lane)
{
    if (!lane->settings.spool_limit || lane->stop_deadline_ns > WR_NEVER - SAVING_S * WR_NS_PER_S)
        return lane->stop_deadline_ns;
    return lane->stop_deadline_ns + SAVING_S * WR_NS_PER_S;
}

bool wr_lane_check(struct wr_lane *lane, int64_t now_ns, int64_t *next_ns)
{
    wr_lock_enter(&lane->lock);
    wr_backpressure_check(&lane->pressure, now_ns);
    int64_t next = wr_backpressure_deadline(&lane->pressure);
    if (lane->stopping && lane->worker == WR_WORKER_RUNNING && lane->ending == WR_LANE_LIVES) {
        if (now_ns >= end_time(lane))
            wr_lane_declare_end(lane);
        else if (end_time(lane) < next)
            next = end_time(lane);
    }
    bool full = lane->pressure.state == WR_BACKPRESSURE_FULL;
    wr_lane_leave(lane);
    if (next < *next_ns)
        *next_ns = next;
    return full;
}

/* ---- Threads of the program's ---------------------------------------------------------------- */

void wr_lane_enter_from_outside(struct wr_lane *lane, sigset_t *signals)
{
    wr_signals_block(signals);
    wr_lock_enter(&lane->lock);
}

void wr_lane_leave_to_outside(struct wr_lane *lane, const sigset_t *signals)
{
    wr_lane_leave(lane);
    wr_signals_restore(signals);
}

/* ---- Answers --------------------------------------------------------------------------------- */

bool wr_lane_explain(struct wr_lane *lane, int answer, struct wr_error *error)
{
    sigset_t signals;
    wr_lane_enter_from_outside(lane, &signals);
    bool explained = lane->explained == answer;
    if (explained)
        wr_error_set(error, answer, "handler \"%s\": %s", lane->name, lane->reason);
    wr_lane_leave_to_outside(lane, &signals);
    return explained;
}
