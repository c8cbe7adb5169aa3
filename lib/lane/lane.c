#include "lane/lane_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lane/lane_now.h"
#include "text/common.h"
#include "text/error.h"
#include "producer/ring.h"
#include "os/pages.h"
#include "os/signals.h"

enum { SAVE_EXTRA_S = 1, LOG_AGAIN_S = 60 };

struct wr_lane *wr_lane_new(const char *name, struct wr_log *log, struct wr_wakeup *wakeup,
                            struct wr_deferred_log *deferred_log)
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
    lane->deferred_log = deferred_log;
    lane->end_reason = WR_LANE_LIVES;
    lane->handler.kinds = WEIR_KINDS_DOUBLE | WEIR_KINDS_INT;
    wr_lane_ledger_init(&lane->ledger);
    return lane;
}

void wr_lane_free_unused(struct wr_lane *lane)
{
    if (!lane)
        return;
    wr_lane_ledger_fini(&lane->ledger);
    wr_spool_state_set_place(&lane->spool_state, NULL);
    wr_pages_put(lane->messages.data);
    free((char *)lane->name);
    free(lane);
}

const char *wr_lane_name(const struct wr_lane *lane)
{
    return lane->name;
}

struct wr_lane *wr_lane_next(const struct wr_lane *lane)
{
    return lane->next;
}

size_t wr_lane_count(const struct wr_lane *lane)
{
    size_t count = 0;
    for (; lane; lane = lane->next)
        count++;
    return count;
}

void wr_lane_set_next(struct wr_lane *lane, struct wr_lane *next)
{
    lane->next = next;
}

/* ---- Messages -------------------------------------------------------------------------------- */

static bool is_in_round(const struct wr_lane *lane)
{
    return lane->deferred_log && wr_deferred_log_is_holder(lane->deferred_log);
}

void wr_lane_log(struct wr_lane *lane, int level, const char *format, ...)
{
    struct wr_deferred_texts *to = is_in_round(lane) ? &lane->deferred_log->texts : &lane->messages;
    va_list arguments;
    va_start(arguments, format);
    wr_deferred_texts_add(to, lane->name, level, format, arguments);
    va_end(arguments);
}

static void unlock_and_log(struct wr_lane *lane)
{
    struct wr_deferred_texts messages = lane->messages;
    lane->messages = (struct wr_deferred_texts){0};
    lane->logging++;
    wr_lock_leave(&lane->lock);
    wr_deferred_log_write(&messages, lane->log);
    wr_lock_enter(&lane->lock);
    lane->logging--;
    wr_condition_wake(&lane->progress);
    wr_lock_leave(&lane->lock);
}

void wr_lane_unlock(struct wr_lane *lane)
{
    if (WR_UNLIKELY(lane->messages.length && !is_in_round(lane)))
        unlock_and_log(lane);
    else
        wr_lock_leave(&lane->lock);
}

/* ---- Waiting calls --------------------------------------------------------------------------- */

void wr_lane_fail_waiters(struct wr_lane *lane, int error)
{
    wr_sync_waiters_fail(&lane->ledger.waiters, error);
    if (error)
        wr_condition_wake(&lane->progress);
}

/* ---- Offering -------------------------------------------------------------------------------- */

uint64_t wr_lane_pressing_bytes(const struct wr_lane *lane)
{
    const struct wr_range *flight = wr_lane_ledger_flight(&lane->ledger);
    bool is_left_out = flight && lane->pressure.spooling && lane->ledger.flight.in_handler;
    return wr_lane_ledger_queued_bytes(&lane->ledger) - (is_left_out ? flight->bytes : 0);
}

static bool is_no_wait(const struct wr_range *range)
{
    return range->segment->samples[range->first].flags & WR_RING_NO_WAIT;
}

/* A full lane whose producers wait still queues what was in their rings, since their calls have returned 0. But
 * weir's own threads do not wait, so what they add is not bounded, and is dropped. */
static void push_unless_no_wait(struct wr_lane *lane, struct wr_range *range)
{
    while (range->count) {
        struct wr_range event = wr_range_split(range, 1);
        if (is_no_wait(&event))
            wr_lane_ledger_discard(&lane->ledger, &event, WEIR_DROPPED_REENTRANT);
        else
            wr_lane_ledger_push(&lane->ledger, &event);
        wr_segment_drop(event.segment);
    }
}

/* Queues as much from the front as fits, and drops the rest. */
static void push_fitting(struct wr_lane *lane, struct wr_range *range, uint64_t room)
{
    uint32_t fit = wr_range_count_fitting(range, room);
    if (fit) {
        struct wr_range taken = wr_range_split(range, fit);
        wr_lane_ledger_push(&lane->ledger, &taken);
        wr_segment_drop(taken.segment);
    }
    if (range->count)
        wr_lane_ledger_drop(&lane->ledger, range, WEIR_DROPPED_FULL);
}

/* Not what is in flight: the handler has it. */
static void drop_oldest(struct wr_lane *lane)
{
    uint64_t bound = lane->pressure.bound;
    while (wr_lane_ledger_queued_bytes(&lane->ledger) > bound && !wr_queue_is_empty(&lane->ledger.queue))
        wr_lane_ledger_drop_oldest(&lane->ledger, wr_lane_ledger_queued_bytes(&lane->ledger) - bound);
}

static void enqueue(struct wr_lane *lane, struct wr_range *range, const struct wr_offer *offer)
{
    uint64_t room = wr_backpressure_room(&lane->pressure, wr_lane_pressing_bytes(lane));
    enum wr_waiting from = offer->keep ? WR_SOURCES_WAIT : WR_ALL_WAIT;
    if (room != UINT64_MAX && !offer->keep)
        push_fitting(lane, range, room);
    else if (offer->no_wait && wr_backpressure_who_waits(&lane->pressure) >= from)
        push_unless_no_wait(lane, range);
    else
        wr_lane_ledger_push(&lane->ledger, range);
    if (wr_backpressure_drops_oldest(&lane->pressure) && !offer->keep)
        drop_oldest(lane);
}

/* A wake costs the dispatcher some microseconds, so the worker is woken only if it has something new to decide.
 */
static bool must_wake(const struct wr_lane *lane, uint64_t queued_before)
{
    return queued_before == 0 || lane->ledger.waiters.count ||
           lane->ledger.queue.samples >= lane->settings.batch ||
           lane->ledger.queue.bytes >= lane->settings.batch_bytes || lane->pressure.pressed ||
           wr_lane_is_half_full(lane);
}

static void offer_locked(struct wr_lane *lane, const struct wr_offer *offer, int64_t now_ns)
{
    struct wr_range range = {
        .segment = offer->segment,
        .first = offer->first,
        .count = offer->count,
        .slot = offer->slot,
        .bytes = wr_segment_bytes(offer->segment, offer->first, offer->count),
        .since_ns = now_ns,
    };
    wr_lane_ledger_offer(&lane->ledger, &range);
    int ending = wr_lane_ending(lane);
    if (ending != WR_LANE_LIVES) {
        wr_lane_ledger_discard(&lane->ledger, &range, (enum weir_drop)ending);
        wr_ticket_complete(offer->ticket, WEIR_ERR_DROPPED);
        return;
    }
    uint64_t queued_before = lane->ledger.queue.samples;
    wr_sync_waiters_add(&lane->ledger.waiters, lane->ledger.position, offer->ticket);
    enqueue(lane, &range, offer);
    wr_backpressure_rise(&lane->pressure, wr_lane_pressing_bytes(lane), now_ns);
    if (offer->now && !queued_before && wr_lane_now_claim(lane, offer->count, now_ns, offer->now))
        return;
    if (must_wake(lane, queued_before))
        wr_lane_thread_wake(&lane->worker);
    if (wr_lane_is_half_full(lane))
        wr_condition_wake(&lane->spooler.work);
}

enum wr_waiting wr_lane_offer(struct wr_lane *lane, const struct wr_offer *offer, int64_t now_ns)
{
    wr_lock_enter(&lane->lock);
    offer_locked(lane, offer, now_ns);
    wr_losses_log(lane, now_ns);
    enum wr_waiting waiting = wr_backpressure_who_waits(&lane->pressure);
    wr_lane_unlock(lane);
    return waiting;
}

struct wr_sample_id wr_lane_take_ids(struct wr_lane *lane, uint64_t count)
{
    wr_lock_enter(&lane->lock);
    struct wr_sample_id first = wr_lane_ledger_take_ids(&lane->ledger, count);
    wr_lane_unlock(lane);
    return first;
}

void wr_lane_leave_out(struct wr_lane *lane, const struct wr_lane_left_out *left_out)
{
    wr_lock_enter(&lane->lock);
    bool recovered = left_out->recovered;
    wr_lane_ledger_pass(&lane->ledger, recovered, WEIR_DROPPED_FILTERED, left_out->filtered);
    wr_lane_ledger_pass(&lane->ledger, recovered, WEIR_DROPPED_UNREPRESENTABLE, left_out->unrepresentable);
    wr_lane_ledger_pass(&lane->ledger, recovered, WEIR_DROPPED_FULL, left_out->lost);
    wr_lane_unlock(lane);
}

/* ---- Aggregation ----------------------------------------------------------------------------- */

struct wr_summer *wr_lane_summer(const struct wr_lane *lane)
{
    return atomic_load_explicit(&lane->summer, memory_order_acquire);
}

struct wr_summer *wr_lane_set_summer(struct wr_lane *lane, struct wr_summer *summer)
{
    struct wr_summer *none = NULL;
    return atomic_compare_exchange_strong(&lane->summer, &none, summer) ? summer : none;
}

/* They are still delivered, unless the process dies. At most once a minute. */
static void log_not_kept(struct wr_lane *lane, const struct wr_lane_arrivals *arrivals)
{
    if (!arrivals->not_kept || arrivals->now_ns < lane->not_kept_log_ns)
        return;
    lane->not_kept_log_ns = arrivals->now_ns + LOG_AGAIN_S * WR_NS_PER_S;
    wr_lane_log(lane, WEIR_LOG_WARNING,
                "the values of summaries that are not delivered yet fill the journal's share of the handler; "
                "further ones are in memory only");
}

int wr_lane_sum(struct wr_lane *lane, const struct wr_lane_arrivals *arrivals)
{
    wr_lock_enter(&lane->lock);
    int ending = wr_lane_ending(lane);
    wr_lane_ledger_sum(&lane->ledger, arrivals);
    log_not_kept(lane, arrivals);
    wr_losses_log(lane, arrivals->now_ns);
    wr_lane_unlock(lane);
    return ending;
}

void wr_lane_discard_sums(struct wr_lane *lane, uint64_t left)
{
    wr_lock_enter(&lane->lock);
    wr_lane_ledger_discard_sums(&lane->ledger, (enum weir_drop)wr_lane_ending(lane), left);
    wr_lane_unlock(lane);
}

bool wr_lane_takes_summaries(struct wr_lane *lane)
{
    wr_lock_enter(&lane->lock);
    /* one that has ended drops them; if it never had a handler, it has no settings */
    bool takes = lane->end_reason != WR_LANE_LIVES ||
                 wr_lane_ledger_queued_bytes(&lane->ledger) < lane->settings.queue_bytes;
    wr_lane_unlock(lane);
    return takes;
}

void wr_lane_offer_summaries(struct wr_lane *lane, struct wr_segment *segment, int64_t now_ns)
{
    wr_lock_enter(&lane->lock);
    struct wr_range range = {
        .segment = segment,
        .count = segment->count,
        .bytes = wr_segment_bytes(segment, 0, segment->count),
        .since_ns = now_ns,
    };
    wr_lane_ledger_offer_sums(&lane->ledger, &range);
    int ending = wr_lane_ending(lane);
    if (ending == WR_LANE_LIVES)
        wr_lane_ledger_push(&lane->ledger, &range);
    else
        wr_lane_ledger_discard(&lane->ledger, &range, (enum weir_drop)ending);
    wr_lane_thread_wake(&lane->worker);
    if (wr_lane_is_half_full(lane))
        wr_condition_wake(&lane->spooler.work);
    wr_losses_log(lane, now_ns);
    wr_lane_unlock(lane);
}

/* ---- Back-pressure --------------------------------------------------------------------------- */

static void wake_if_changed(struct wr_lane *lane, enum wr_waiting before)
{
    if (before != wr_backpressure_who_waits(&lane->pressure) && lane->wakeup)
        wr_wakeup_send(lane->wakeup);
}

void wr_lane_made_progress(struct wr_lane *lane, int64_t now_ns)
{
    enum wr_waiting before = wr_backpressure_who_waits(&lane->pressure);
    wr_backpressure_fall(&lane->pressure, wr_lane_pressing_bytes(lane), now_ns);
    wake_if_changed(lane, before);
    wr_condition_wake(&lane->progress);
}

void wr_lane_eased(struct wr_lane *lane)
{
    enum wr_waiting before = wr_backpressure_who_waits(&lane->pressure);
    wr_backpressure_ease(&lane->pressure, wr_lane_pressing_bytes(lane));
    wake_if_changed(lane, before);
}

void wr_lane_set_spooling(struct wr_lane *lane, bool spooling, int64_t now_ns)
{
    enum wr_waiting before = wr_backpressure_who_waits(&lane->pressure);
    wr_backpressure_set_spooling(&lane->pressure, spooling, wr_lane_pressing_bytes(lane), now_ns);
    wake_if_changed(lane, before);
}

void wr_lane_set(struct wr_lane *lane, const struct wr_lane_settings *settings, int64_t now_ns)
{
    enum wr_waiting before = wr_backpressure_who_waits(&lane->pressure);
    lane->settings = *settings;
    lane->pressure.overflow = settings->overflow;
    lane->pressure.bound = settings->queue_bytes;
    lane->pressure.timeout_ns = settings->block_timeout_ns;
    wr_backpressure_calm(&lane->pressure);
    wr_backpressure_set_spooling(&lane->pressure, settings->spool_limit && lane->spool_state.place,
                                 wr_lane_ledger_queued_bytes(&lane->ledger), now_ns);
    wake_if_changed(lane, before);
    wr_backoff_init(&lane->delivery.backoff, settings->retry_min_ns, settings->retry_max_ns,
                    (uint64_t)now_ns ^ (uintptr_t)lane);
}

static void put_count(char *text, size_t size, uint64_t count, const char *what)
{
    size_t length = strlen(text);
    if (count)
        snprintf(text + length, size - length, "%s%" PRIu64 " %s", length ? ", " : "", count, what);
}

/* Samples on disk are not lost, but they are not at their destination either. */
static void log_end(struct wr_lane *lane, uint64_t dropped)
{
    wr_losses_state(lane, (enum weir_drop)lane->stop_reason, dropped);
    const char *why = wr_delivery_why_failing(&lane->delivery);
    char counts[120] = "";
    put_count(counts, sizeof counts, wr_lane_ledger_spooled(&lane->ledger), "spooled");
    put_count(counts, sizeof counts, lane->ledger.left_in_journal, "left in the journal");
    put_count(counts, sizeof counts, dropped, "dropped");
    if (counts[0])
        wr_lane_log(lane, dropped ? WEIR_LOG_ERROR : WEIR_LOG_WARNING, "%s%s%s; not delivered in time: %s",
                    lane->stop_reason == WEIR_DROPPED_REMOVED ? "removed" : "shutting down",
                    why ? " while failing: "
                    : wr_lane_thread_is_inside(&lane->worker) || lane->ledger.flight.in_handler
                        ? " while the handler is busy"
                        : "",
                    why ? why : "", counts);
}

void wr_lane_declare_end(struct wr_lane *lane)
{
    uint64_t left = wr_lane_ledger_queued(&lane->ledger);
    enum wr_waiting before = wr_backpressure_who_waits(&lane->pressure);
    uint64_t kept = lane->ledger.left_in_journal;
    lane->end_reason = lane->stop_reason;
    wr_lane_drop_all(lane, (enum weir_drop)lane->stop_reason);
    log_end(lane, left - (lane->ledger.left_in_journal - kept));
    wr_backpressure_calm(&lane->pressure);
    wake_if_changed(lane, before);
    wr_condition_wake(&lane->progress);
}

/* When the end of a lane is declared that has not come to it by itself. A spool gets extra time for writing. */
static int64_t end_time(const struct wr_lane *lane)
{
    if (!lane->settings.spool_limit || lane->stop_deadline_ns > WR_NEVER - SAVE_EXTRA_S * WR_NS_PER_S)
        return lane->stop_deadline_ns;
    return lane->stop_deadline_ns + SAVE_EXTRA_S * WR_NS_PER_S;
}

/* Whether the lane has to be ended by its deadline. Without a worker nothing else does it if it was removed; at
 * the end of the process the thread that shuts down may still save what is queued. */
static bool must_end_in_time(const struct wr_lane *lane)
{
    return wr_lane_is_stopping(lane) && lane->end_reason == WR_LANE_LIVES &&
           (wr_lane_thread_runs(&lane->worker) || lane->stop_reason == WEIR_DROPPED_REMOVED);
}

enum wr_waiting wr_lane_check(struct wr_lane *lane, int64_t now_ns, int64_t *next_ns)
{
    wr_lock_enter(&lane->lock);
    wr_backpressure_check(&lane->pressure, now_ns);
    wr_losses_log(lane, now_ns);
    int64_t next = wr_backpressure_deadline(&lane->pressure);
    if (must_end_in_time(lane)) {
        if (now_ns >= end_time(lane))
            wr_lane_declare_end(lane);
        else if (end_time(lane) < next)
            next = end_time(lane);
    }
    enum wr_waiting waiting = wr_backpressure_who_waits(&lane->pressure);
    wr_lane_unlock(lane);
    if (next < *next_ns)
        *next_ns = next;
    return waiting;
}

/* ---- Recovery -------------------------------------------------------------------------------- */

static bool queue_recovered(struct wr_lane *lane, struct wr_range *range)
{
    if (lane->end_reason != WR_LANE_LIVES || !wr_lane_ledger_recover(&lane->ledger, range))
        return false;
    wr_backpressure_rise(&lane->pressure, wr_lane_pressing_bytes(lane), range->since_ns);
    wr_lane_thread_wake_all(lane);
    return true;
}

bool wr_lane_recover(struct wr_lane *lane, struct wr_range *range, int64_t now_ns, enum wr_waiting *waiting)
{
    range->bytes = wr_segment_bytes(range->segment, range->first, range->count);
    range->since_ns = now_ns;
    wr_lock_enter(&lane->lock);
    bool queued = queue_recovered(lane, range);
    *waiting = wr_backpressure_who_waits(&lane->pressure);
    wr_lane_unlock(lane);
    return queued;
}

void wr_lane_drop_corrupt(struct wr_lane *lane, const struct wr_range *range)
{
    wr_lock_enter(&lane->lock);
    wr_lane_ledger_pass(&lane->ledger, true, WEIR_DROPPED_CORRUPT, range->count);
    wr_range_settle(range, range->count);
    wr_lane_unlock(lane);
}

/* ---- Threads of the program ------------------------------------------------------------------ */

void wr_lane_lock_from_program(struct wr_lane *lane, sigset_t *signals)
{
    wr_signals_block(signals);
    wr_lock_enter(&lane->lock);
}

void wr_lane_unlock_from_program(struct wr_lane *lane, const sigset_t *signals)
{
    wr_lane_unlock(lane);
    wr_signals_restore(signals);
}

struct wr_lane_progress wr_lane_get_progress(struct wr_lane *lane)
{
    wr_lock_enter(&lane->lock);
    struct wr_lane_progress progress = {
        .settled = wr_lane_ledger_done(&lane->ledger),
        .timeout_ns = lane->settings.block_timeout_ns + lane->handler.try_timeout_ns,
        .is_awaited = lane->ledger.waiters.count > 0,
    };
    wr_lane_unlock(lane);
    return progress;
}

bool wr_lane_describe_error(struct wr_lane *lane, int result, struct wr_error *error)
{
    sigset_t signals;
    wr_lane_lock_from_program(lane, &signals);
    bool known = lane->delivery.last_error_code == result;
    if (known)
        wr_error_set(error, result, "handler \"%s\": %s", lane->name, lane->delivery.last_error);
    wr_lane_unlock_from_program(lane, &signals);
    return known;
}

void wr_lane_request_reload(struct wr_lane *lane)
{
    wr_lock_enter(&lane->lock);
    lane->reload_wanted = true;
    if (wr_delivery_revive(&lane->delivery))
        wr_lane_fail_waiters(lane, 0);
    wr_lane_thread_wake(&lane->worker);
    wr_lane_unlock(lane);
}

uint64_t wr_lane_wait_queued(struct wr_lane *lane, uint64_t most, int64_t deadline_ns)
{
    sigset_t signals;
    wr_lane_lock_from_program(lane, &signals);
    if (wr_lane_ledger_queued_bytes(&lane->ledger) > most)
        wr_condition_wait_open(&lane->progress, &lane->lock, deadline_ns, &signals);
    uint64_t queued = wr_lane_ledger_queued_bytes(&lane->ledger);
    wr_lane_unlock_from_program(lane, &signals);
    return queued;
}
