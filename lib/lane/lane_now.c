#include "lane/lane_now.h"

#include "lane/lane_internal.h"
#include "lane/lane_next.h"
#include "lane/outcome.h"
#include "os/clock.h"
#include "registry/labels.h"

static bool has_spool(const struct wr_lane *lane)
{
    return lane->settings.spool_limit || lane->spool_state.place || lane->spool_state.busy;
}

/* Whether the handler may be called at once. */
static bool is_ready(const struct wr_lane *lane, int64_t now_ns)
{
    bool is_timer_due = lane->wake_at_ns && lane->wake_at_ns <= now_ns;
    return lane->delivery.connection == WR_DELIVERY_OPEN && !lane->delivery.retry_at_ns && !is_timer_due;
}

/* While the worker is ASLEEP no flush, reload, successor or stop is due, since each wakes it, and no fork is
 * while a round offers. If calls fail at once, this one has done so already. */
bool wr_lane_now_claim(struct wr_lane *lane, uint64_t count, int64_t now_ns, struct wr_lane_now *now)
{
    if (!lane->handler.has_now || lane->worker.state != WR_THREAD_ASLEEP || !is_ready(lane, now_ns) ||
        !wr_lane_ledger_has_only(&lane->ledger, count) || lane->ledger.waiters.error || has_spool(lane) ||
        !wr_lane_next_load(lane, now_ns))
        return false;
    wr_lane_ledger_enter_handler(&lane->ledger);
    wr_lane_thread_enter_now(&lane->worker, now_ns);
    *now = (struct wr_lane_now){
        .lane = lane,
        .call = {.kind = WR_LANE_CALL_EMIT,
                 .instance = lane->handler.instance,
                 .range = lane->ledger.flight.range,
                 .labels = lane->labels},
    };
    wr_labels_hold(lane->labels);
    return true;
}

/* Applies the outcome. Returns whether the worker has something to do. */
static void settle(struct wr_lane *lane, weir_outcome *outcome, const struct wr_lane_omissions *omissions)
{
    int64_t now_ns = wr_clock_monotonic_ns();
    bool not_now = outcome->code == WEIR_OUTCOME_NOT_NOW;
    if (not_now && !outcome->done && !lane->ledger.flight.settled_early) {
        wr_lane_ledger_leave_handler(&lane->ledger); /* the worker continues with it */
        return;
    }
    if (not_now)
        outcome->code = WEIR_OUTCOME_OK;
    wr_outcome_apply_emit(lane, outcome, omissions, now_ns);
    wr_losses_log(lane, now_ns);
}

/* After a shutdown that no longer waits for it, the caller returns to the program all the same. */
void wr_lane_now_finish(const struct wr_lane_now *now, weir_outcome *outcome,
                        const struct wr_lane_omissions *omissions)
{
    struct wr_lane *lane = now->lane;
    wr_lock_enter(&lane->lock);
    bool was_woken = wr_lane_thread_leave_now(&lane->worker);
    wr_condition_wake(&lane->progress);
    settle(lane, outcome, omissions);
    if (was_woken || lane->messages.length || lane->ledger.flight.range.segment ||
        !wr_queue_is_empty(&lane->ledger.queue) || lane->delivery.connection != WR_DELIVERY_OPEN ||
        lane->end_reason != WR_LANE_LIVES)
        wr_lane_thread_wake(&lane->worker);
    wr_lock_leave(&lane->lock);
}
