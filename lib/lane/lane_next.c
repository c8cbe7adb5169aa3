#include "lane/lane_next.h"

#include "text/common.h"
#include "lane/spool_policy.h"

static struct wr_lane_next_step simply(enum wr_lane_next_kind kind)
{
    return (struct wr_lane_next_step){.kind = kind, .until_ns = WR_NEVER};
}

static struct wr_lane_next_step sleep_until(int64_t until_ns)
{
    return (struct wr_lane_next_step){.kind = WR_LANE_NEXT_SLEEP, .until_ns = until_ns};
}

static struct wr_lane_next_step flush_until(int64_t until_ns)
{
    return (struct wr_lane_next_step){.kind = WR_LANE_NEXT_FLUSH, .until_ns = until_ns};
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- What there is to deliver ---------------------------------------------------------------- */

/* Somebody waits: linger and batch sizes do not count. */
static bool is_hurried(const struct wr_lane *lane)
{
    return lane->stopping || lane->successor.instance || lane->sync_waiters.count ||
           lane->flushed < lane->flush_wanted || lane->pressure.state != WR_BACKPRESSURE_CALM;
}

/* When the queue's front has lingered long enough. */
static int64_t emit_time(const struct wr_lane *lane)
{
    if (lane->flight.range.segment || lane->spool_state.samples || lane->spool_state.moving.segment)
        return 0;
    const struct wr_queue *queue = &lane->queue;
    if (wr_queue_is_empty(queue))
        return WR_NEVER;
    if (is_hurried(lane) || queue->samples >= lane->settings.batch ||
        queue->bytes >= lane->settings.batch_bytes)
        return 0;
    return wr_queue_front(queue)->since_ns + lane->settings.linger_ns;
}

/* A call that waits gets a batch that ends with its sample, so that the answer to the batch is the answer to
 * the call. */
static uint32_t batch_limit(const struct wr_lane *lane, const struct wr_range *front)
{
    uint32_t limit = lane->settings.batch;
    if (lane->sync_waiters.count) {
        uint64_t left = lane->sync_waiters.calls[0].sequence - front->position;
        if (left < limit)
            limit = (uint32_t)left;
    }
    return limit;
}

/* Whether the handler takes all kinds that are in the event of samples [first, end). */
static bool takes_event(const struct wr_lane *lane, const struct wr_segment *segment, uint32_t first,
                        uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        if (!(lane->kinds >> segment->samples[i].kind & 1))
            return false;
    return true;
}

/* How many samples at the front of the range are in events that the handler takes, or (takes = false) does not
 * take; looks at one event at least, and no further than it has to for `most`. */
static uint32_t count_alike(const struct wr_lane *lane, const struct wr_range *range, bool takes, uint32_t most)
{
    uint32_t count = 0;
    do {
        uint32_t first = range->first + count, end = wr_segment_event_end(range->segment, first);
        if (takes_event(lane, range->segment, first, end) != takes)
            break;
        count += end - first;
    } while (count < range->count && count < most);
    return count;
}

/* What comes next: what was read from disk is older than what did not get there, and that than what is queued.
 * NULL: nothing is in memory, or there is more on disk. */
static const struct wr_range *find_front(const struct wr_lane *lane)
{
    const struct wr_spool_state *spool_state = &lane->spool_state;
    if (spool_state->fetched.segment)
        return &spool_state->fetched;
    if (spool_state->samples)
        return NULL;
    if (spool_state->moving.segment)
        return &spool_state->moving;
    return wr_queue_is_empty(&lane->queue) ? NULL : wr_queue_front(&lane->queue);
}

static struct wr_range take_front(struct wr_lane *lane, uint32_t most, uint64_t most_bytes)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    if (spool_state->fetched.segment)
        return wr_range_take(&spool_state->fetched, most, most_bytes);
    if (spool_state->moving.segment)
        return wr_range_take(&spool_state->moving, most, most_bytes);
    return wr_queue_take(&lane->queue, most, most_bytes);
}

static void withhold(struct wr_lane *lane, bool spooled, uint32_t count, int64_t now_ns)
{
    struct wr_range withheld = take_front(lane, count, UINT64_MAX);
    uint64_t next = withheld.position + withheld.count;
    wr_range_settle(&withheld, withheld.count);
    wr_lane_count_drop(lane, WEIR_DROPPED_UNREPRESENTABLE, withheld.count);
    wr_segment_drop(withheld.segment);
    if (spooled) {
        wr_spool_policy_settled(lane, withheld.count, next, now_ns);
        return;
    }
    wr_lane_complete_calls(lane, next, WEIR_ERR_DROPPED);
    wr_lane_made_progress(lane, now_ns);
}

/* Moves the next batch into flight; false: there was only what the handler does not take. */
static bool load_flight(struct wr_lane *lane, int64_t now_ns)
{
    const struct wr_range *front;
    while ((front = find_front(lane))) {
        bool spooled = front == &lane->spool_state.fetched;
        uint32_t most = spooled ? lane->settings.batch : batch_limit(lane, front);
        uint32_t wanted = lane->kinds ? count_alike(lane, front, true, most) : front->count;
        if (wanted) {
            lane->flight.range = take_front(lane, wanted < most ? wanted : most, lane->settings.batch_bytes);
            lane->flight.spooled = spooled;
            return true;
        }
        withhold(lane, spooled, count_alike(lane, front, false, UINT32_MAX), now_ns);
    }
    return false;
}

/* ---- Deciding -------------------------------------------------------------------------------- */

/* The way to a closed handler. */
static struct wr_lane_next_step close_first(const struct wr_lane *lane, int64_t deadline_ns,
                                            enum wr_lane_next_kind then)
{
    if (!lane->open)
        return simply(then);
    if (lane->needs_flush && lane->has_flush && !lane->must_reopen)
        return flush_until(deadline_ns);
    return simply(WR_LANE_NEXT_CLOSE);
}

static bool is_at_end(struct wr_lane *lane, int64_t now_ns)
{
    if (!lane->stopping)
        return false;
    bool nothing_left = !wr_spool_policy_has_memory(lane) &&
                        (!lane->spool_state.samples || wr_spool_policy_must_save(lane, now_ns));
    bool has_looked = wr_spool_policy_search_time(lane) > now_ns;
    if (!(nothing_left && has_looked) && lane->end_reason == WR_LANE_LIVES && now_ns < lane->stop_deadline_ns)
        return false;
    if (lane->end_reason == WR_LANE_LIVES)
        wr_lane_declare_end(lane);
    return true;
}

/* Whether the handler has yet to be asked to flush, everything before being settled. */
static bool must_flush(struct wr_lane *lane, int64_t now_ns)
{
    if (lane->flushed >= lane->flush_wanted || wr_lane_front(lane) < lane->flush_wanted)
        return false;
    if (lane->open && lane->needs_flush && lane->has_flush) {
        if (now_ns < lane->flush_deadline_ns)
            return true;
        lane->flush_wanted = lane->flushed; /* nobody waits any more */
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

/* What there is to do besides delivering; SLEEP: nothing before until_ns. */
static struct wr_lane_next_step tend(struct wr_lane *lane, int64_t now_ns)
{
    int64_t until_ns = WR_NEVER;
    if (must_flush(lane, now_ns)) {
        if (now_ns >= lane->retry_at_ns)
            return flush_until(lane->flush_deadline_ns);
        until_ns = lane->retry_at_ns;
    }
    if (lane->open && lane->reload_wanted)
        return wake(WEIR_WAKE_RELOAD);
    if (lane->open && lane->wake_at_ns) {
        if (now_ns >= lane->wake_at_ns)
            return wake(WEIR_WAKE_TIMER);
        until_ns = earlier(until_ns, lane->wake_at_ns);
    }
    return sleep_until(until_ns);
}

/* When the next try is due; WR_NEVER: there is nothing to deliver. */
static int64_t try_time(const struct wr_lane *lane)
{
    int64_t at_ns = emit_time(lane);
    return at_ns < lane->retry_at_ns ? lane->retry_at_ns : at_ns;
}

static struct wr_lane_next_step try_to_deliver(struct wr_lane *lane, int64_t now_ns)
{
    if (!lane->open)
        return simply(WR_LANE_NEXT_OPEN);
    if (!lane->flight.range.segment && !load_flight(lane, now_ns)) {
        if (wr_spool_policy_must_fetch(lane))
            return simply(WR_LANE_NEXT_FETCH);
        return lane->stopping ? sleep_until(now_ns)
                              : tend(lane, now_ns); /* with nothing left this is the end */
    }
    lane->flight.in_handler = true;
    return simply(WR_LANE_NEXT_EMIT);
}

/* When a lane that stops has to be looked at again. */
static int64_t stop_time(const struct wr_lane *lane, int64_t now_ns)
{
    bool saves = lane->settings.spool_limit && now_ns < lane->spool_state.save_at_ns;
    return saves ? lane->spool_state.save_at_ns : lane->stop_deadline_ns;
}

/* Nothing to do at this moment. */
static struct wr_lane_next_step rest(struct wr_lane *lane, int64_t until_ns, int64_t now_ns)
{
    if (lane->stopping)
        until_ns = earlier(until_ns, stop_time(lane, now_ns));
    until_ns = earlier(until_ns, wr_spool_policy_search_time(lane));
    return sleep_until(earlier(until_ns, wr_spool_policy_time(lane, now_ns)));
}

/* Where values keep coming there is always more to deliver: everything else has its turn first. But for what
 * goes to disk: in that the handler takes turns with it. */
static struct wr_lane_next_step deliver(struct wr_lane *lane, int64_t now_ns)
{
    if (wr_spool_policy_search_time(lane) <= now_ns)
        return simply(WR_LANE_NEXT_SEARCH);
    if (lane->must_reopen && lane->open)
        return simply(WR_LANE_NEXT_CLOSE);
    if (!lane->open)
        lane->reload_wanted = false; /* opening is as good */
    struct wr_lane_next_step step = tend(lane, now_ns);
    if (step.kind != WR_LANE_NEXT_SLEEP)
        return step;
    int64_t at_ns = try_time(lane);
    if (wr_spool_policy_prepare(lane, now_ns))
        return simply(WR_LANE_NEXT_SPOOL);
    lane->spool_state.handler_turn = false;
    if (at_ns <= now_ns)
        return try_to_deliver(lane, now_ns);
    return rest(lane, earlier(at_ns, step.until_ns), now_ns);
}

struct wr_lane_next_step wr_lane_next_decide(struct wr_lane *lane, int64_t now_ns)
{
    if (lane->fork_pending || lane->spool_state.busy)
        return sleep_until(WR_NEVER);
    if (wr_spool_policy_must_save(lane, now_ns) && wr_spool_policy_prepare(lane, now_ns))
        return simply(WR_LANE_NEXT_SPOOL);
    if (is_at_end(lane, now_ns))
        return close_first(lane, lane->stop_deadline_ns, WR_LANE_NEXT_END);
    if (lane->successor.instance)
        return close_first(lane, now_ns, WR_LANE_NEXT_REPLACE);
    if (lane->end_reason != WR_LANE_LIVES)
        return lane->open ? simply(WR_LANE_NEXT_CLOSE) : sleep_until(WR_NEVER);
    return deliver(lane, now_ns);
}
