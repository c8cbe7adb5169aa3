#include "throttle.h"

#include <weir/weir.h>

#include "clock.h"
#include "common.h"
#include "engine.h"
#include "flush.h"
#include "lane.h"
#include "runtime.h"

enum { SLICE_MS = 50, RESERVE = 8 };

/* After a round, nothing is on its way to the lanes any more. */
static void run_round(struct wr_engine *engine)
{
    struct wr_visit visit;
    int64_t next_ns;
    wr_engine_enter(engine, &visit);
    wr_dispatcher_round(&engine->dispatcher, &next_ns);
    wr_engine_leave(&visit);
}

/* [under the lane's lock] A part stays free for weir's own metrics. What is larger than the whole queue has to
 * go when nothing else is there. */
static uint64_t find_room(const struct wr_lane *lane, uint64_t bytes)
{
    uint64_t bound = lane->settings.queue_bytes - lane->settings.queue_bytes / RESERVE;
    uint64_t queued = wr_lane_queued_bytes(lane);
    if (!queued && bound < bytes)
        return bytes;
    return bound > queued ? bound - queued : 0;
}

/* Values that linger to fill a batch are not to be waited for; a handler that fails has its pauses. */
static void hurry(struct wr_lane *lane)
{
    weir_handler_stats stats;
    wr_lane_read_stats(lane, &stats, 0);
    if (!stats.failing)
        wr_flush_request(lane, WR_NEVER);
}

/* Waits a moment for a lane to make progress, unless it has room already; answers its room. */
static uint64_t wait_for_room(struct wr_lane *lane, uint64_t bytes)
{
    sigset_t signals;
    wr_lane_enter_from_outside(lane, &signals);
    uint64_t room = find_room(lane, bytes);
    wr_lane_leave_to_outside(lane, &signals);
    if (room >= bytes)
        return room;
    hurry(lane);
    wr_lane_enter_from_outside(lane, &signals);
    if (find_room(lane, bytes) < bytes)
        wr_condition_wait_open(&lane->progress, &lane->lock, wr_clock_deadline_ns(SLICE_MS), &signals);
    room = find_room(lane, bytes);
    wr_lane_leave_to_outside(lane, &signals);
    return room;
}

bool throttle_take(struct throttle *throttle, uint64_t bytes)
{
    if (throttle->room < bytes) {
        struct wr_engine *engine = wr_runtime_engine(wr_runtime_get());
        run_round(engine);
        throttle->room = UINT64_MAX;
        for (struct wr_lane *lane = wr_engine_lanes(engine); lane; lane = lane->next) {
            uint64_t room = wait_for_room(lane, bytes);
            if (room < throttle->room)
                throttle->room = room;
        }
    }
    if (throttle->room < bytes)
        return false;
    throttle->room -= bytes;
    return true;
}
