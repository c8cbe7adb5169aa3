#include "lane/stop.h"

#include "os/clock.h"
#include "text/common.h"
#include "os/thread.h"

enum { COMING_BACK_MS = 250 };

/* Without a worker: what is left goes to disk with wr_spool_io_save. */
static bool saves_later(const struct wr_lane *lane)
{
    return lane->settings.spool_limit && wr_lane_queued(lane);
}

void wr_stop_request(struct wr_lane *lane, enum weir_drop reason, int64_t deadline_ns)
{
    sigset_t signals;
    wr_lane_enter_from_outside(lane, &signals);
    lane->stopping = true;
    lane->stop_reason = (int)reason;
    lane->stop_deadline_ns = deadline_ns;
    wr_spool_state_plan(&lane->spool_state, wr_clock_monotonic_ns(), deadline_ns);
    lane->retry_at_ns = 0;
    if (lane->worker != WR_WORKER_RUNNING && lane->ending == WR_LANE_LIVES && !saves_later(lane))
        wr_lane_declare_end(lane);
    wr_condition_wake(&lane->work);
    wr_lane_leave_to_outside(lane, &signals);
}

/* The process may end next: what another thread is just saying is let out. Not for ever, as the program's own
 * function may say it. */
static void wait_until_said(struct wr_lane *lane, const sigset_t *signals)
{
    int64_t patience_ns = wr_clock_monotonic_ns() + WR_NS_PER_S;
    while (lane->speaking && wr_clock_monotonic_ns() < patience_ns)
        wr_condition_wait_open(&lane->progress, &lane->lock, patience_ns, signals);
}

/* A handler that is at work is let out of it, if it comes soon: it may be inside a library whose exit handlers
 * take apart what it uses. One that waits (WEIR_SERVICE_BLOCKING_CALL) never goes back there. */
static void let_come_back(struct wr_lane *lane, int64_t patience_ns, const sigset_t *signals)
{
    while (lane->worker == WR_WORKER_RUNNING && lane->in_callback && wr_clock_monotonic_ns() < patience_ns)
        wr_condition_wait_open(&lane->progress, &lane->lock, patience_ns, signals);
}

void wr_stop_wait(struct wr_lane *lane, int64_t deadline_ns)
{
    sigset_t signals;
    /* counted from the deadline, so that several handlers that are stuck cost no more than one */
    const int64_t coming_back_ns = COMING_BACK_MS * WR_NS_PER_MS;
    int64_t patience_ns = deadline_ns < WR_NEVER - coming_back_ns ? deadline_ns + coming_back_ns : WR_NEVER;
    wr_lane_enter_from_outside(lane, &signals);
    while (lane->worker == WR_WORKER_RUNNING && wr_clock_monotonic_ns() < deadline_ns)
        wr_condition_wait_open(&lane->progress, &lane->lock, deadline_ns, &signals);
    if (lane->ending == WR_LANE_LIVES)
        wr_lane_declare_end(lane);
    let_come_back(lane, patience_ns, &signals);
    lane->abandoned = lane->worker == WR_WORKER_RUNNING;
    bool ended = lane->worker == WR_WORKER_ENDED;
    if (ended)
        lane->worker = WR_WORKER_NONE;
    wait_until_said(lane, &signals);
    wr_lane_leave_to_outside(lane, &signals);
    /* libraries clean up after themselves at the end of a thread: that must be over before their exit handlers
     * run */
    if (ended && !wr_thread_join_by(lane->thread, patience_ns))
        pthread_detach(lane->thread);
}
