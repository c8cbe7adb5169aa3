#include "lane/lane_flush.h"

#include <inttypes.h>

#include "lane/lane_internal.h"
#include "os/clock.h"
#include "text/common.h"
#include "text/error.h"
#include "lane/spool_policy.h"

uint64_t wr_lane_flush_request(struct wr_lane *lane, int64_t deadline_ns)
{
    sigset_t signals;
    wr_lane_lock_from_program(lane, &signals);
    uint64_t position = lane->ledger.position;
    bool pending = lane->flushed < lane->flush_wanted;
    if (!pending || deadline_ns > lane->flush_deadline_ns)
        lane->flush_deadline_ns = deadline_ns;
    if (position > lane->flush_wanted)
        lane->flush_wanted = position;
    wr_delivery_hurry(&lane->delivery);
    if (lane->delivery.health != WR_DELIVERY_GIVEN_UP || lane->successor.instance)
        wr_lane_fail_waiters(lane, 0); /* there will be another attempt */
    wr_lane_thread_wake(&lane->worker);
    wr_lane_unlock_from_program(lane, &signals);
    return position;
}

/* Without a running worker no handler holds samples that it has settled. The handler's flush is not called
 * until all that was asked for is settled, which later calls may have moved beyond what a failing one ever
 * takes. */
static bool is_flushed(const struct wr_lane *lane, uint64_t position)
{
    bool is_alive = wr_lane_thread_runs(&lane->worker) && lane->end_reason == WR_LANE_LIVES;
    if (wr_lane_ledger_front(&lane->ledger) < position)
        return false;
    return lane->flushed >= position || !is_alive ||
           (wr_delivery_is_failing(&lane->delivery) && !lane->delivery.needs_flush);
}

/* Whether all undelivered samples before the position are on disk. */
static bool is_spooled(const struct wr_lane *lane, uint64_t position)
{
    return wr_lane_ledger_front(&lane->ledger) < position &&
           wr_lane_ledger_front_in_memory(&lane->ledger) >= position;
}

/* Whether they stay there: another attempt has failed, or there will be none. */
static bool stays_spooled(const struct wr_lane *lane, uint64_t position)
{
    bool will_retry = wr_lane_thread_runs(&lane->worker) && lane->end_reason == WR_LANE_LIVES;
    return is_spooled(lane, position) &&
           (!will_retry || (wr_delivery_is_failing(&lane->delivery) && lane->delivery.retry_at_ns));
}

/* Whether the handler has failed the waiting calls, and nothing is being moved to disk because of that. */
static bool has_failed(struct wr_lane *lane)
{
    if (!lane->ledger.waiters.error || lane->spool_state.busy)
        return false;
    int64_t now_ns = wr_clock_monotonic_ns();
    return !wr_lane_thread_runs(&lane->worker) || wr_spool_policy_time(lane, now_ns) > now_ns;
}

static bool is_done(struct wr_lane *lane, uint64_t position)
{
    return is_flushed(lane, position) || stays_spooled(lane, position) || has_failed(lane);
}

static int report_error(const struct wr_lane *lane, uint64_t position, struct wr_error *error)
{
    const char *why = wr_delivery_why_failing(&lane->delivery);
    if (is_spooled(lane, position))
        return wr_error_set(error, WEIR_ERR_SPOOLED, "handler \"%s\": %" PRIu64 " values are on disk only: %s",
                            lane->name, wr_lane_ledger_spooled(&lane->ledger),
                            why ? why : "not delivered in time");
    if (lane->ledger.waiters.error)
        return wr_error_set(error, lane->ledger.waiters.error, "handler \"%s\": %s", lane->name,
                            lane->delivery.last_error);
    return wr_error_set(error, WEIR_ERR_TIMEOUT, "handler \"%s\" has not delivered in time", lane->name);
}

int wr_lane_flush_wait(struct wr_lane *lane, uint64_t position, int64_t deadline_ns, struct wr_error *error)
{
    sigset_t signals;
    int result = 0;
    wr_lane_lock_from_program(lane, &signals);
    while (!is_done(lane, position) && wr_clock_monotonic_ns() < deadline_ns)
        wr_condition_wait_open(&lane->progress, &lane->lock, deadline_ns, &signals);
    if (!is_flushed(lane, position))
        result = report_error(lane, position, error);
    wr_lane_unlock_from_program(lane, &signals);
    return result;
}
