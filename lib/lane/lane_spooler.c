#include "lane/lane_spooler.h"

#include "lane/lane_internal.h"
#include "lane/spool_io.h"
#include "lane/spool_policy.h"
#include "os/clock.h"
#include "text/common.h"

/* ---- Starting -------------------------------------------------------------------------------- */

void wr_lane_spooler_start(struct wr_lane *lane, void *(*run)(void *lane))
{
    wr_lock_enter(&lane->lock);
    bool claimed =
        lane->settings.spool_limit && lane->stop < WR_LANE_SHUT && wr_lane_thread_claim(&lane->spooler);
    wr_lane_unlock(lane);
    if (!claimed)
        return;
    if (!wr_lane_thread_start(lane, &lane->spooler, run))
        wr_lane_log(lane, WEIR_LOG_WARNING,
                    "cannot start a thread for its spool; nothing is spooled while the handler is busy");
    wr_lane_unlock(lane);
}

/* ---- The thread ------------------------------------------------------------------------------ */

static bool is_over(const struct wr_lane *lane)
{
    return lane->stop >= WR_LANE_SHUT || !wr_lane_thread_runs(&lane->worker);
}

/* Prepares ledger.moving if the handler is being called. Otherwise *until_ns is when to try again. */
static bool prepare(struct wr_lane *lane, int64_t *until_ns)
{
    *until_ns = WR_NEVER;
    return !wr_lane_is_forking(lane) && lane->worker.busy_since_ns &&
           wr_spool_policy_prepare_meanwhile(lane, wr_clock_monotonic_ns(), until_ns);
}

/* Messages are logged without the lock. */
static void move(struct wr_lane *lane)
{
    wr_spool_io_move(lane);
    wr_lane_thread_park_if_abandoned(lane);
    wr_lane_unlock(lane);
    wr_lock_enter(&lane->lock);
}

void wr_lane_spooler_run(struct wr_lane *lane)
{
    int64_t until_ns;
    wr_lock_enter(&lane->lock);
    wr_lane_thread_await_start(lane, &lane->spooler);
    while (!is_over(lane)) {
        if (prepare(lane, &until_ns))
            move(lane);
        else
            wr_condition_wait(&lane->spooler.work, &lane->lock, until_ns);
    }
    wr_lane_thread_end(lane, &lane->spooler);
    wr_lane_unlock(lane);
}
