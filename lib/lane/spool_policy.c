#include "lane/spool_policy.h"

#include <inttypes.h>
#include <stdio.h>

#include "text/common.h"

enum {
    STEPS_IN_LIMIT = 64,
    SMALLEST_STEP = 4 * 1024,
    LARGEST_STEP = 256 * 1024,
    BUSY_MS = 50,
};

/* How many bytes of samples are moved at a time. */
static uint64_t step_bytes(uint64_t limit)
{
    uint64_t bytes = limit / STEPS_IN_LIMIT;
    return bytes < SMALLEST_STEP ? SMALLEST_STEP : bytes > LARGEST_STEP ? LARGEST_STEP : bytes;
}

/* ---- Contents -------------------------------------------------------------------------------- */

static bool is_usable(const struct wr_lane *lane)
{
    const struct wr_spool_state *spool_state = &lane->spool_state;
    return lane->settings.spool_limit && spool_state->place && spool_state->registry && !spool_state->busy;
}

/* The oldest samples that can be moved at this moment; NULL: there are none. */
static const struct wr_range *find_movable(const struct wr_lane *lane)
{
    const struct wr_lane_ledger *ledger = &lane->ledger;
    if (ledger->moving.segment)
        return &ledger->moving;
    if (wr_lane_ledger_flight(ledger) && !ledger->flight.in_handler)
        return &ledger->flight.range;
    return wr_queue_is_empty(&ledger->queue) ? NULL : wr_queue_front(&ledger->queue);
}

bool wr_spool_policy_must_save(const struct wr_lane *lane, int64_t now_ns)
{
    if (!wr_lane_is_stopping(lane) || !lane->settings.spool_limit)
        return false;
    return wr_delivery_is_failing(&lane->delivery) ||
           (lane->stop_deadline_ns != WR_NEVER && now_ns >= lane->spool_state.save_at_ns);
}

/* A failing handler gets one more attempt, with what is on disk by then. */
bool wr_spool_policy_may_leave(const struct wr_lane *lane, int64_t now_ns)
{
    bool has_time = lane->stop_deadline_ns == WR_NEVER || now_ns < lane->spool_state.save_at_ns;
    bool tries = wr_delivery_is_failing(&lane->delivery) && now_ns >= lane->delivery.retry_at_ns;
    return wr_spool_policy_must_save(lane, now_ns) && !(has_time && tries);
}

/* ---- What to move ---------------------------------------------------------------------------- */

/* A flush waits, and the handler fails. */
static bool is_flush_failing(const struct wr_lane *lane, int64_t now_ns)
{
    return lane->flushed < lane->flush_wanted && wr_delivery_is_failing(&lane->delivery) &&
           now_ns < lane->delivery.retry_at_ns &&
           wr_lane_ledger_front_in_memory(&lane->ledger) < lane->flush_wanted;
}

/* How long a handler may be busy before samples are moved to disk: well below block_timeout, after which they
 * would be dropped. */
static int64_t busy_limit_ns(const struct wr_lane *lane)
{
    int64_t half_ns = lane->settings.block_timeout_ns / 2;
    return half_ns < BUSY_MS * WR_NS_PER_MS ? half_ns : BUSY_MS * WR_NS_PER_MS;
}

/* When a queue that is half full is to be moved: at once if the handler does not take samples, else when a
 * single call of it takes too long. */
static int64_t fill_time(const struct wr_lane *lane)
{
    if (!wr_lane_is_half_full(lane))
        return WR_NEVER;
    if (wr_delivery_is_failing(&lane->delivery) || lane->ledger.spooled.samples ||
        lane->settings.overflow != WR_OVERFLOW_BLOCK || lane->pressure.state == WR_BACKPRESSURE_STALLED)
        return 0;
    return lane->worker.busy_since_ns ? lane->worker.busy_since_ns + busy_limit_ns(lane) : WR_NEVER;
}

/* Once moving begins, everything queued by then is moved. After that the handler has a turn before moving
 * begins again. */
static int64_t spill_time(struct wr_lane *lane, int64_t now_ns)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    if (spool_state->spilling && find_movable(lane)->position < spool_state->spill_end)
        return 0;
    spool_state->handler_turn |= spool_state->spilling;
    int64_t at_ns = spool_state->handler_turn ? WR_NEVER : fill_time(lane);
    spool_state->spilling = at_ns <= now_ns;
    spool_state->spill_end = lane->ledger.position;
    return at_ns;
}

int64_t wr_spool_policy_time(struct wr_lane *lane, int64_t now_ns)
{
    if (!is_usable(lane) || lane->end_reason != WR_LANE_LIVES || !find_movable(lane))
        return WR_NEVER;
    bool at_once = wr_spool_policy_must_save(lane, now_ns) || is_flush_failing(lane, now_ns);
    int64_t at_ns = at_once ? 0 : spill_time(lane, now_ns);
    return at_ns > lane->spool_state.put_at_ns ? at_ns : lane->spool_state.put_at_ns;
}

static void take(struct wr_lane *lane, bool also_in_handler)
{
    wr_lane_ledger_move(&lane->ledger, also_in_handler, step_bytes(lane->settings.spool_limit));
}

bool wr_spool_policy_prepare(struct wr_lane *lane, int64_t now_ns)
{
    bool is_due = wr_spool_policy_time(lane, now_ns) <= now_ns;
    if (is_due)
        take(lane, false);
    else
        lane->spool_state.handler_turn = false; /* it gets it now */
    return is_due;
}

bool wr_spool_policy_prepare_meanwhile(struct wr_lane *lane, int64_t now_ns, int64_t *until_ns)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    spool_state->handler_turn = false;
    if (wr_spool_policy_prepare(lane, now_ns))
        return true;
    *until_ns = wr_spool_policy_time(lane, now_ns);
    if (wr_lane_is_stopping(lane) && now_ns < spool_state->save_at_ns && spool_state->save_at_ns < *until_ns)
        *until_ns = spool_state->save_at_ns;
    return false;
}

bool wr_spool_policy_prepare_last(struct wr_lane *lane, int64_t now_ns)
{
    if (!is_usable(lane) || lane->end_reason != WR_LANE_LIVES || !wr_lane_ledger_has_queued(&lane->ledger) ||
        lane->spool_state.put_at_ns > now_ns)
        return false;
    take(lane, true);
    return true;
}

/* ---- What to read ---------------------------------------------------------------------------- */

/* Even a program that ends at once searches once; otherwise samples left by such programs would never be
 * adopted. */
int64_t wr_spool_policy_search_time(const struct wr_lane *lane)
{
    const struct wr_spool_state *spool_state = &lane->spool_state;
    bool may = is_usable(lane) && !lane->ledger.spooled.samples && !wr_delivery_is_failing(&lane->delivery) &&
               (!wr_lane_is_stopping(lane) || !spool_state->search_at_ns);
    return may ? spool_state->search_at_ns : WR_NEVER;
}

bool wr_spool_policy_must_fetch(const struct wr_lane *lane)
{
    return lane->ledger.spooled.samples && !lane->ledger.flight.range.segment &&
           !lane->ledger.fetched.range.segment;
}

void wr_spool_policy_describe(const struct wr_lane *lane, char *text, size_t size)
{
    int length = snprintf(text, size, "%" PRIu64 " queued", wr_lane_ledger_queued(&lane->ledger));
    if (lane->ledger.spooled.samples && length > 0 && (size_t)length < size)
        snprintf(text + length, size - (size_t)length, ", %" PRIu64 " spooled",
                 wr_lane_ledger_spooled(&lane->ledger));
}
