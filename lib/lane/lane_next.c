#include "lane/lane_next.h"

#include "text/common.h"
#include "lane/spool_io.h"
#include "lane/spool_policy.h"

static struct wr_lane_next_step step_until(enum wr_lane_next_kind kind, int64_t until_ns)
{
    return (struct wr_lane_next_step){.kind = kind, .until_ns = until_ns};
}

static struct wr_lane_next_step step_of(enum wr_lane_next_kind kind)
{
    return step_until(kind, WR_NEVER);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- What to deliver ------------------------------------------------------------------------- */

/* Whether to deliver without linger and without waiting for a full batch. */
static bool is_urgent(const struct wr_lane *lane)
{
    return wr_lane_is_stopping(lane) || lane->successor.instance || lane->ledger.waiters.count ||
           lane->flushed < lane->flush_wanted || lane->pressure.pressed;
}

/* When the next batch is due, without regard to back-off. */
static int64_t emit_time(const struct wr_lane *lane)
{
    if (lane->ledger.flight.range.segment || lane->ledger.spooled.samples || lane->ledger.moving.segment)
        return 0;
    const struct wr_queue *queue = &lane->ledger.queue;
    if (!wr_delivery_is_open(&lane->delivery) && lane->settings.opens_early)
        return 0;
    if (wr_queue_is_empty(queue))
        return WR_NEVER;
    if (is_urgent(lane) || queue->samples >= lane->settings.batch || queue->bytes >= lane->settings.batch_bytes)
        return 0;
    return wr_queue_front(queue)->since_ns + lane->settings.linger_ns;
}

/* The batch of a synchronous call ends with the call's sample, so that the batch's result is the call's. */
static uint32_t batch_limit(const struct wr_lane *lane, const struct wr_range *front)
{
    uint32_t limit = lane->settings.batch;
    if (lane->ledger.waiters.count) {
        uint64_t left = lane->ledger.waiters.calls[0].sequence - front->position;
        if (left < limit)
            limit = (uint32_t)left;
    }
    return limit;
}

static bool accepts(const struct wr_lane *lane, const weir_sample *sample)
{
    return sample->kind < 32 && lane->handler.kinds >> sample->kind & 1 && !(sample->flags & WR_SAMPLE_NO_ROOM);
}

/* Whether the handler gets all samples in the event [first, end). */
static bool accepts_event(const struct wr_lane *lane, const struct wr_segment *segment, uint32_t first,
                          uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        if (!accepts(lane, &segment->samples[i]))
            return false;
    return true;
}

/* How many samples at the front of the range are in events that the handler gets, or (are_accepted = false)
 * does not get. Checks at least one event, and no more than needed for `most`. */
static uint32_t count_alike(const struct wr_lane *lane, const struct wr_range *range, bool are_accepted,
                            uint32_t most)
{
    uint32_t count = 0;
    do {
        uint32_t first = range->first + count, end = wr_segment_event_end(range->segment, first);
        if (accepts_event(lane, range->segment, first, end) != are_accepted)
            break;
        count += end - first;
    } while (count < range->count && count < most);
    return count;
}

static void drop_unaccepted(struct wr_lane *lane, bool spooled, uint32_t count, int64_t now_ns)
{
    struct wr_lane_dropped dropped = wr_lane_ledger_drop_next(&lane->ledger, count);
    lane->losses.has_spooled_too_many |= dropped.no_room;
    if (spooled) {
        wr_spool_io_settled(lane, dropped.samples, dropped.values, now_ns);
        return;
    }
    wr_lane_ledger_complete(&lane->ledger, dropped.end, WEIR_ERR_DROPPED);
    wr_lane_made_progress(lane, now_ns);
}

/* Returns false if there were only kinds that the handler does not accept. */
bool wr_lane_next_load(struct wr_lane *lane, int64_t now_ns)
{
    const struct wr_range *front;
    while ((front = wr_lane_ledger_next(&lane->ledger))) {
        bool spooled = front == &lane->ledger.fetched.range;
        uint32_t most = spooled ? lane->settings.batch : batch_limit(lane, front);
        uint32_t wanted =
            wr_lane_accepts_all(lane, front->segment) ? front->count : count_alike(lane, front, true, most);
        if (wanted) {
            wr_lane_ledger_load(&lane->ledger, wanted < most ? wanted : most, lane->settings.batch_bytes);
            return true;
        }
        drop_unaccepted(lane, spooled, count_alike(lane, front, false, UINT32_MAX), now_ns);
    }
    return false;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

/* Flush, close, then `then`. */
static struct wr_lane_next_step close_first(const struct wr_lane *lane, int64_t deadline_ns,
                                            enum wr_lane_next_kind then)
{
    if (!wr_delivery_is_open(&lane->delivery))
        return step_of(then);
    if (lane->delivery.needs_flush && lane->delivery.connection != WR_DELIVERY_BROKEN)
        return step_until(WR_LANE_NEXT_FLUSH, deadline_ns);
    return step_of(WR_LANE_NEXT_CLOSE);
}

/* There is no further attempt, or the handler reported in the last one since the stop was requested that others
 * are of no use. What a spool has taken by then is not dropped; what it has no room for is given all the time
 * there is. */
static bool has_given_up(const struct wr_lane *lane)
{
    return lane->delivery.health >= WR_DELIVERY_HOPELESS && !lane->settings.spool_limit &&
           !lane->successor.instance;
}

static bool is_at_end(struct wr_lane *lane, int64_t now_ns)
{
    if (!wr_lane_is_stopping(lane))
        return false;
    bool nothing_left = !wr_lane_ledger_has_queued(&lane->ledger) &&
                        (!lane->ledger.spooled.samples || wr_spool_policy_may_leave(lane, now_ns));
    bool has_searched = wr_spool_policy_search_time(lane) > now_ns;
    bool is_done = (nothing_left && has_searched) || has_given_up(lane);
    if (!is_done && lane->end_reason == WR_LANE_LIVES && now_ns < lane->stop_deadline_ns)
        return false;
    if (lane->end_reason == WR_LANE_LIVES)
        wr_lane_declare_end(lane);
    return true;
}

/* Whether to call the handler's flush: everything before the position is settled. */
static bool must_flush(struct wr_lane *lane, int64_t now_ns)
{
    if (lane->flushed >= lane->flush_wanted || wr_lane_ledger_front(&lane->ledger) < lane->flush_wanted)
        return false;
    if (lane->delivery.needs_flush) {
        if (now_ns < lane->flush_deadline_ns)
            return true;
        lane->flush_wanted = lane->flushed; /* the flush has timed out */
        return false;
    }
    lane->flushed = lane->flush_wanted;
    wr_condition_wake(&lane->progress);
    return false;
}

static struct wr_lane_next_step wake(int why)
{
    return (struct wr_lane_next_step){.kind = WR_LANE_NEXT_WAKE, .why = why, .until_ns = WR_NEVER};
}

/* Flush, reload and timer. SLEEP: none of them before until_ns. */
static struct wr_lane_next_step requested_step(struct wr_lane *lane, int64_t now_ns)
{
    int64_t until_ns = WR_NEVER;
    if (must_flush(lane, now_ns)) {
        if (now_ns >= lane->delivery.retry_at_ns)
            return step_until(WR_LANE_NEXT_FLUSH, lane->flush_deadline_ns);
        until_ns = lane->delivery.retry_at_ns;
    }
    if (wr_delivery_is_open(&lane->delivery) && lane->reload_wanted)
        return wake(WEIR_WAKE_RELOAD);
    if (wr_delivery_is_open(&lane->delivery) && lane->wake_at_ns) {
        if (now_ns >= lane->wake_at_ns)
            return wake(WEIR_WAKE_TIMER);
        until_ns = earlier(until_ns, lane->wake_at_ns);
    }
    return step_until(WR_LANE_NEXT_SLEEP, until_ns);
}

/* When the next attempt is due; WR_NEVER: there is nothing to deliver. */
static int64_t attempt_time(const struct wr_lane *lane)
{
    int64_t at_ns = emit_time(lane);
    return at_ns < lane->delivery.retry_at_ns ? lane->delivery.retry_at_ns : at_ns;
}

static struct wr_lane_next_step attempt(struct wr_lane *lane, int64_t now_ns)
{
    if (!wr_delivery_is_open(&lane->delivery))
        return step_of(WR_LANE_NEXT_OPEN);
    if (!lane->ledger.flight.range.segment && !wr_lane_next_load(lane, now_ns)) {
        if (wr_spool_policy_must_fetch(lane))
            return step_of(WR_LANE_NEXT_FETCH);
        /* a lane that stops is decided on again at once: is_at_end is true then */
        return wr_lane_is_stopping(lane) ? step_until(WR_LANE_NEXT_SLEEP, now_ns)
                                         : requested_step(lane, now_ns);
    }
    wr_lane_ledger_enter_handler(&lane->ledger);
    wr_lane_eased(lane);
    return step_of(WR_LANE_NEXT_EMIT);
}

/* When a lane that stops has to be decided on again. */
static int64_t stop_time(const struct wr_lane *lane, int64_t now_ns)
{
    bool saves = lane->settings.spool_limit && now_ns < lane->spool_state.save_at_ns;
    return saves ? lane->spool_state.save_at_ns : lane->stop_deadline_ns;
}

/* Nothing to do now. */
static struct wr_lane_next_step idle(struct wr_lane *lane, int64_t until_ns, int64_t now_ns)
{
    if (wr_lane_is_stopping(lane))
        until_ns = earlier(until_ns, stop_time(lane, now_ns));
    until_ns = earlier(until_ns, wr_spool_policy_search_time(lane));
    return step_until(WR_LANE_NEXT_SLEEP, earlier(until_ns, wr_spool_policy_time(lane, now_ns)));
}

/* While samples keep coming there is always more to deliver, so everything else comes first. Only moving
 * samples to disk alternates with delivering. */
static struct wr_lane_next_step deliver(struct wr_lane *lane, int64_t now_ns)
{
    if (wr_spool_policy_search_time(lane) <= now_ns)
        return step_of(WR_LANE_NEXT_SEARCH);
    if (lane->delivery.connection == WR_DELIVERY_BROKEN)
        return step_of(WR_LANE_NEXT_CLOSE);
    if (!wr_delivery_is_open(&lane->delivery))
        lane->reload_wanted = false; /* opening does the same */
    struct wr_lane_next_step step = requested_step(lane, now_ns);
    if (step.kind != WR_LANE_NEXT_SLEEP)
        return step;
    int64_t at_ns = attempt_time(lane);
    if (wr_spool_policy_prepare(lane, now_ns))
        return step_of(WR_LANE_NEXT_SPOOL);
    if (at_ns <= now_ns)
        return attempt(lane, now_ns);
    return idle(lane, earlier(at_ns, step.until_ns), now_ns);
}

struct wr_lane_next_step wr_lane_next_decide(struct wr_lane *lane, int64_t now_ns)
{
    if (wr_lane_is_forking(lane) || lane->spool_state.busy || wr_lane_thread_is_now(&lane->worker))
        return step_until(WR_LANE_NEXT_SLEEP, WR_NEVER);
    if (wr_spool_policy_must_save(lane, now_ns) && wr_spool_policy_prepare(lane, now_ns))
        return step_of(WR_LANE_NEXT_SPOOL);
    if (is_at_end(lane, now_ns))
        return close_first(lane, lane->stop_deadline_ns, WR_LANE_NEXT_END);
    if (lane->successor.instance)
        return close_first(lane, now_ns, WR_LANE_NEXT_REPLACE);
    if (lane->end_reason != WR_LANE_LIVES)
        return wr_delivery_is_open(&lane->delivery) ? step_of(WR_LANE_NEXT_CLOSE)
                                                    : step_until(WR_LANE_NEXT_SLEEP, WR_NEVER);
    return deliver(lane, now_ns);
}
