#include "lane/lane_fork.h"

#include "lane/lane_internal.h"
#include "os/clock.h"
#include "spool/spool.h"

void wr_lane_fork_prepare(struct wr_lane *lane, int64_t deadline_ns)
{
    if (!wr_lock_enter_by(&lane->lock, deadline_ns))
        return;
    lane->fork = WR_LANE_FORK_PENDING;
    while ((wr_lane_thread_is_inside(&lane->worker) || lane->spool_state.busy) &&
           wr_clock_monotonic_ns() < deadline_ns)
        wr_condition_wait(&lane->progress, &lane->lock, deadline_ns);
    wr_lane_unlock(lane);
}

void wr_lane_fork_parent(struct wr_lane *lane)
{
    wr_lock_enter(&lane->lock);
    if (lane->fork == WR_LANE_FORK_NOTICED)
        wr_lane_thread_wake_all(lane);
    lane->fork = WR_LANE_FORK_NONE;
    wr_lane_unlock(lane);
}

struct wr_instance *wr_lane_fork_child(const struct wr_lane *lane, bool *torn)
{
    if (lane->spool_state.spool)
        wr_spool_abandon(lane->spool_state.spool);
    *torn = wr_lane_thread_is_inside(&lane->worker);
    return lane->handler.instance;
}
