#include "lane/lane_worker.h"

#include "lane/lane_internal.h"
#include "lane/lane_next.h"
#include "lane/outcome.h"
#include "lane/spool_io.h"
#include "os/clock.h"
#include "os/thread.h"
#include "registry/labels.h"
#include "text/common.h"

/* ---- Starting -------------------------------------------------------------------------------- */

bool wr_lane_worker_claim(struct wr_lane *lane, struct wr_registry *registry, const struct wr_worker_env *env)
{
    wr_lock_enter(&lane->lock);
    bool claimed = lane->worker != WR_WORKER_RUNNING;
    lane->spool_state.registry = registry;
    if (claimed) {
        lane->worker_env = env;
        lane->has_ended_thread = lane->worker == WR_WORKER_ENDED;
        lane->worker = WR_WORKER_RUNNING;
        lane->starting = true;
    }
    wr_lane_unlock(lane);
    return claimed;
}

/* `starting` keeps all other threads from lane->thread, and the new one from its first step. */
bool wr_lane_worker_start(struct wr_lane *lane, void *(*run)(void *lane))
{
    pthread_t thread;
    if (lane->has_ended_thread)
        wr_thread_release(lane->thread);
    bool running = wr_thread_start(run, lane, &thread);
    wr_lock_enter(&lane->lock);
    if (running)
        lane->thread = thread;
    else if (!lane->no_thread)
        wr_lane_log(lane, WEIR_LOG_ERROR,
                    "cannot start a thread for it; values are dropped until one can be started");
    lane->worker = running ? WR_WORKER_RUNNING : WR_WORKER_NONE;
    lane->no_thread = !running;
    lane->starting = lane->has_ended_thread = false;
    wr_condition_wake(&lane->progress);
    wr_condition_wake(&lane->ended);
    wr_lane_unlock(lane);
    return running;
}

static void wait_until_started(struct wr_lane *lane)
{
    while (lane->starting)
        wr_condition_wait(&lane->progress, &lane->lock, WR_NEVER);
}

const struct wr_worker_env *wr_lane_worker_env(const struct wr_lane *lane)
{
    return lane->worker_env;
}

/* ---- Entering and leaving plugin code -------------------------------------------------------- */

/* After a shutdown that no longer waited for this thread, the program may be destroying what the thread would
 * use. Caller holds the lane lock. */
static void park_if_abandoned(struct wr_lane *lane)
{
    if (!lane->abandoned)
        return;
    wr_lane_unlock(lane);
    wr_thread_park();
}

/* Releases the lane lock. */
static void enter_callback(struct wr_lane *lane)
{
    park_if_abandoned(lane);
    lane->in_callback = true;
    lane->busy_since_ns = wr_clock_monotonic_ns();
    if (wr_lane_is_half_full(lane))
        wr_condition_wake(&lane->spooler.work);
    wr_lane_unlock(lane);
}

/* Takes the lane lock. */
static void leave_callback(struct wr_lane *lane, const char *breach)
{
    wr_lock_enter(&lane->lock);
    park_if_abandoned(lane);
    if (breach)
        lane->breach = breach;
    lane->in_callback = false;
    lane->busy_since_ns = 0;
    wr_condition_wake(&lane->progress);
}

/* ---- The next call --------------------------------------------------------------------------- */

static void use_spool(struct wr_lane *lane, void (*operate)(struct wr_lane *lane))
{
    operate(lane);
    park_if_abandoned(lane);
}

static void prepare_emit(struct wr_lane *lane, struct wr_lane_call *call)
{
    call->range = lane->flight.range;
    call->labels = lane->flight.spooled ? lane->spool_state.labels : lane->labels;
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

static void sleep_until(struct wr_lane *lane, int64_t until_ns)
{
    lane->asleep = true;
    wr_condition_wait(&lane->work, &lane->lock, until_ns);
    lane->asleep = false;
}

/* Takes one step. Returns whether *call is to be made. */
static bool take_step(struct wr_lane *lane, struct wr_lane_call *call)
{
    use_spool(lane, wr_spool_io_settle);
    struct wr_lane_next_step step = decide(lane);
    *call = (struct wr_lane_call){.instance = lane->handler.instance};
    switch (step.kind) {
    case WR_LANE_NEXT_SLEEP: sleep_until(lane, step.until_ns); return false;
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
    call->instance = lane->handler.instance;
    lane->handler = (struct wr_lane_handler){0};
    return true;
}

/* Messages are logged without the lock. */
static void log_messages(struct wr_lane *lane)
{
    if (!lane->messages.count)
        return;
    wr_lane_unlock(lane);
    wr_lock_enter(&lane->lock);
}

void wr_lane_worker_next(struct wr_lane *lane, struct wr_lane_call *call)
{
    wr_lock_enter(&lane->lock);
    wait_until_started(lane);
    while (!take_step(lane, call))
        log_messages(lane);
    enter_callback(lane);
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

/* Otherwise samples that the spooler is writing would be dropped, and delivered by a later process too. */
static void wait_for_disk(struct wr_lane *lane)
{
    while (lane->spool_state.busy) {
        wr_condition_wait(&lane->work, &lane->lock, WR_NEVER);
        park_if_abandoned(lane);
    }
}

void wr_lane_worker_finish(struct wr_lane *lane, const struct wr_lane_call *call, weir_outcome *outcome,
                           const struct wr_lane_omissions *omissions, const char *breach)
{
    leave_callback(lane, breach);
    if (outcome && outcome->code == WEIR_OUTCOME_FAILED)
        wait_for_disk(lane);
    int64_t now_ns = wr_clock_monotonic_ns();
    switch (call->kind) {
    case WR_LANE_CALL_OPEN: wr_outcome_of_open(lane, outcome, now_ns); break;
    case WR_LANE_CALL_EMIT: wr_outcome_of_emit(lane, outcome, omissions, now_ns); break;
    case WR_LANE_CALL_FLUSH: wr_outcome_of_flush(lane, outcome, call->flush_position, now_ns); break;
    case WR_LANE_CALL_WAKE: wr_outcome_of_wake(lane, outcome, call->why, now_ns); break;
    case WR_LANE_CALL_CLOSE: wr_outcome_of_close(lane); break;
    case WR_LANE_CALL_DESTROY: break;
    }
    wr_losses_log(lane, now_ns);
    wr_lane_unlock(lane);
}

/* The successor takes over even if the lane is to end: samples may have been offered for it meanwhile. */
struct wr_instance *wr_lane_worker_replace(struct wr_lane *lane, const char *breach)
{
    leave_callback(lane, breach);
    if (lane->successor.instance) {
        wr_lane_take_successor(lane);
    } else {
        lane->worker = WR_WORKER_ENDED;
        wr_condition_wake(&lane->progress);
        wr_condition_wake(&lane->ended);
        wr_condition_wake(&lane->spooler.work);
    }
    struct wr_instance *successor = lane->handler.instance;
    wr_lane_unlock(lane);
    return successor;
}
