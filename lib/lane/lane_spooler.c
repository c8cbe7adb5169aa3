#include "lane/lane_spooler.h"

#include "lane/lane_internal.h"
#include "lane/spool_io.h"
#include "lane/spool_policy.h"
#include "os/clock.h"
#include "os/thread.h"
#include "text/common.h"

/* ---- Starting -------------------------------------------------------------------------------- */

void wr_lane_spooler_start(struct wr_lane *lane, void *(*run)(void *lane))
{
    pthread_t last, thread;
    wr_lock_enter(&lane->lock);
    bool wanted = lane->settings.spool_limit && lane->spooler.state != WR_WORKER_RUNNING && !lane->spooler.stop;
    bool ended = wanted && lane->spooler.state == WR_WORKER_ENDED;
    last = lane->spooler.thread;
    if (wanted)
        lane->spooler.state = WR_WORKER_NONE;
    wr_lane_unlock(lane);
    if (ended)
        wr_thread_release(last);
    if (!wanted)
        return;
    bool started = wr_thread_start(run, lane, &thread);
    wr_lock_enter(&lane->lock);
    if (started) {
        lane->spooler.thread = thread;
        lane->spooler.state = WR_WORKER_RUNNING;
        wr_condition_wake(&lane->spooler.work);
    } else {
        wr_lane_log(lane, WEIR_LOG_WARNING,
                    "cannot start a thread for its spool; nothing is spooled while the handler is busy");
    }
    wr_lane_unlock(lane);
}

/* ---- The thread ------------------------------------------------------------------------------ */

static bool is_over(const struct wr_lane *lane)
{
    return lane->spooler.stop || lane->worker != WR_WORKER_RUNNING;
}

/* Prepares spool_state.moving if the handler is being called. Otherwise *until_ns is when to try again. */
static bool prepare(struct wr_lane *lane, int64_t *until_ns)
{
    int64_t now_ns = wr_clock_monotonic_ns();
    *until_ns = WR_NEVER;
    if (wr_lane_is_forking(lane) || !lane->busy_since_ns)
        return false;
    lane->spool_state.handler_turn = false;
    if (wr_spool_policy_prepare(lane, now_ns))
        return true;
    lane->spool_state.handler_turn = false; /* the end of a spill sets it, but the handler is having its turn */
    *until_ns = wr_spool_policy_time(lane, now_ns);
    if (lane->stopping && now_ns < lane->spool_state.save_at_ns && lane->spool_state.save_at_ns < *until_ns)
        *until_ns = lane->spool_state.save_at_ns;
    return false;
}

/* After a shutdown that no longer waited for this thread it must not return. Messages are logged without the
 * lock. */
static void move(struct wr_lane *lane)
{
    wr_spool_io_move(lane);
    bool abandoned = lane->abandoned;
    wr_lane_unlock(lane);
    if (abandoned)
        wr_thread_park();
    wr_lock_enter(&lane->lock);
}

void wr_lane_spooler_run(struct wr_lane *lane)
{
    int64_t until_ns;
    wr_lock_enter(&lane->lock);
    while (lane->spooler.state != WR_WORKER_RUNNING) /* until the thread's id is stored */
        wr_condition_wait(&lane->spooler.work, &lane->lock, WR_NEVER);
    while (!is_over(lane)) {
        if (prepare(lane, &until_ns))
            move(lane);
        else
            wr_condition_wait(&lane->spooler.work, &lane->lock, until_ns);
    }
    lane->spooler.state = WR_WORKER_ENDED;
    wr_condition_wake(&lane->progress);
    wr_lane_unlock(lane);
}
