#include "lane/tally.h"

#include <string.h>

#include "os/clock.h"
#include "lane/lane.h"

static int64_t find_age_ms(const struct wr_lane *lane, int64_t now_ns)
{
    const struct wr_range *oldest = wr_lane_flying(lane);
    if (!oldest && !wr_queue_is_empty(&lane->queue))
        oldest = wr_queue_front(&lane->queue);
    return oldest && now_ns > oldest->since_ns ? (now_ns - oldest->since_ns) / WR_NS_PER_MS : 0;
}

void wr_tally_fill(weir_handler_stats *stats, const struct wr_lane *lane, int64_t now_ns)
{
    *stats = (weir_handler_stats){
        .size = sizeof *stats,
        .offered = lane->offered,
        .recovered = lane->recovered,
        .delivered = lane->delivered,
        .queued = wr_lane_queued(lane),
        .queue_bytes = wr_lane_queued_bytes(lane),
        .queue_age_ms = find_age_ms(lane, now_ns),
        .spooled = lane->spool_state.samples + lane->left,
        .spool_bytes = lane->spool_state.bytes,
        .spool_limit = lane->settings.spool_limit,
        .retries = lane->retries,
        .faults = lane->faults,
        .failing = lane->failing,
        .open = lane->open,
    };
    memcpy(stats->dropped, lane->dropped, sizeof stats->dropped);
}

void wr_tally_take(weir_handler_stats *stats, struct wr_lane *lane, int64_t now_ns)
{
    sigset_t signals;
    wr_lane_enter_from_outside(lane, &signals);
    wr_tally_fill(stats, lane, now_ns);
    wr_lane_leave_to_outside(lane, &signals);
}
