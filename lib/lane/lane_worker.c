#include "lane/lane_worker.h"

#include "lane/lane_internal.h"
#include "lane/lane_next.h"
#include "lane/outcome.h"
#include "lane/spool_io.h"
#include "os/clock.h"
#include "registry/labels.h"
#include "text/common.h"

/* ---- Starting -------------------------------------------------------------------------------- */

bool wr_lane_worker_claim(struct wr_lane *lane, struct wr_registry *registry, const struct wr_worker_env *env)
{
    wr_lock_enter(&lane->lock);
    bool claimed = wr_lane_thread_claim(&lane->worker);
    lane->spool_state.registry = registry;
    if (claimed)
        lane->worker_env = env;
    wr_lane_unlock(lane);
    return claimed;
}

bool wr_lane_worker_start(struct wr_lane *lane, void *(*run)(void *lane))
{
    bool had_failed = wr_lane_thread_has_failed(&lane->worker);
    bool started = wr_lane_thread_start(lane, &lane->worker, run);
    if (!started && !had_failed)
        wr_lane_log(lane, WEIR_LOG_ERROR,
                    "cannot start a thread for it; values are dropped until one can be started");
    wr_lane_unlock(lane);
    return started;
}

const struct wr_worker_env *wr_lane_worker_env(const struct wr_lane *lane)
{
    return lane->worker_env;
}

/* ---- The next call --------------------------------------------------------------------------- */

static void use_spool(struct wr_lane *lane, void (*operate)(struct wr_lane *lane))
{
    operate(lane);
    wr_lane_thread_park_if_abandoned(lane);
}

static void prepare_emit(struct wr_lane *lane, struct wr_lane_call *call)
{
    call->range = lane->ledger.flight.range;
    call->labels = lane->ledger.flight.spooled ? lane->ledger.fetched.labels : lane->labels;
    wr_labels_hold(call->labels);
}

/* The lane may be configured again whenever the lock is released, so nothing releases it between a decision and
 * its effect: what is done on disk before the end is followed by another decision. */
static struct wr_lane_next_step decide(struct wr_lane *lane)
{
    struct wr_lane_next_step step = wr_lane_next_decide(lane, wr_clock_monotonic_ns());
    if (step.kind != WR_LANE_NEXT_END)
        return step;
    use_spool(lane, wr_spool_io_tidy);
    return wr_lane_next_decide(lane, wr_clock_monotonic_ns());
}

/* Takes one step. Returns whether *call is to be made. */
static bool take_step(struct wr_lane *lane, struct wr_lane_call *call)
{
    use_spool(lane, wr_spool_io_settle);
    struct wr_lane_next_step step = decide(lane);
    *call = (struct wr_lane_call){.instance = lane->handler.instance};
    switch (step.kind) {
    case WR_LANE_NEXT_SLEEP: wr_lane_thread_sleep(lane, step.until_ns); return false;
    case WR_LANE_NEXT_SEARCH: use_spool(lane, wr_spool_io_search); return false;
    case WR_LANE_NEXT_SPOOL: use_spool(lane, wr_spool_io_move); return false;
    case WR_LANE_NEXT_FETCH: use_spool(lane, wr_spool_io_fetch); return false;
    case WR_LANE_NEXT_OPEN: call->kind = WR_LANE_CALL_OPEN; return true;
    case WR_LANE_NEXT_CLOSE: call->kind = WR_LANE_CALL_CLOSE; return true;
    case WR_LANE_NEXT_EMIT:
        call->kind = WR_LANE_CALL_EMIT;
        prepare_emit(lane, call);
        return true;
    case WR_LANE_NEXT_FLUSH:
        call->kind = WR_LANE_CALL_FLUSH;
        call->deadline_ns = step.until_ns;
        call->flush_position = lane->flush_wanted;
        return true;
    case WR_LANE_NEXT_WAKE:
        call->kind = WR_LANE_CALL_WAKE;
        call->why = step.why;
        if (step.why == WEIR_WAKE_TIMER)
            lane->wake_at_ns = 0;
        return true;
    case WR_LANE_NEXT_END:
    case WR_LANE_NEXT_REPLACE: break;
    }
    call->kind = WR_LANE_CALL_DESTROY;
    lane->handler.instance = NULL;
    return true;
}

/* Messages are logged without the lock. */
static void log_messages(struct wr_lane *lane)
{
    if (!lane->messages.length)
        return;
    wr_lane_unlock(lane);
    wr_lock_enter(&lane->lock);
}

void wr_lane_worker_next(struct wr_lane *lane, struct wr_lane_call *call)
{
    wr_lock_enter(&lane->lock);
    wr_lane_thread_await_start(lane, &lane->worker);
    while (!take_step(lane, call))
        log_messages(lane);
    wr_lane_thread_enter(lane);
}

/* ---- Its outcome ----------------------------------------------------------------------------- */

void wr_lane_worker_init_outcome(weir_outcome *outcome, uint32_t done)
{
    *outcome = (weir_outcome){.size = sizeof *outcome, .code = WEIR_OUTCOME_OK, .done = done};
}

void wr_lane_worker_set_done(weir_outcome *outcome, uint32_t count)
{
    if (outcome->done == WR_DONE_BY_CODE)
        outcome->done = outcome->code == WEIR_OUTCOME_OK ? count : 0;
}

void wr_lane_worker_finish(struct wr_lane *lane, const struct wr_lane_call *call, weir_outcome *outcome,
                           const struct wr_lane_omissions *omissions, const char *breach)
{
    wr_lane_thread_leave(lane, breach);
    int64_t now_ns = wr_clock_monotonic_ns();
    switch (call->kind) {
    case WR_LANE_CALL_OPEN: wr_outcome_apply_open(lane, outcome, now_ns); break;
    case WR_LANE_CALL_EMIT: wr_outcome_apply_emit(lane, outcome, omissions, now_ns); break;
    case WR_LANE_CALL_FLUSH: wr_outcome_apply_flush(lane, outcome, call->flush_position, now_ns); break;
    case WR_LANE_CALL_WAKE: wr_outcome_apply_wake(lane, outcome, call->why, now_ns); break;
    case WR_LANE_CALL_CLOSE: wr_outcome_apply_close(lane); break;
    case WR_LANE_CALL_DESTROY: break;
    }
    wr_losses_log(lane, now_ns);
    wr_lane_unlock(lane);
}

/* The successor takes over even if the lane is to end: samples may have been offered for it meanwhile. */
struct wr_instance *wr_lane_worker_replace(struct wr_lane *lane, const char *breach)
{
    wr_lane_thread_leave(lane, breach);
    if (lane->successor.instance)
        wr_lane_take_successor(lane);
    else
        wr_lane_thread_end(lane, &lane->worker);
    struct wr_instance *successor = lane->handler.instance;
    wr_lane_unlock(lane);
    return successor;
}
