#include "delivery.h"

#include <inttypes.h>

#include <weir/weir.h>

#include "common/command.h"
#include "dispatch/selfmetrics.h"
#include "engine/engine.h"
#include "lane/lane.h"
#include "lane/lane_stats.h"
#include "runtime/runtime.h"
#include "text/buffer.h"

static struct wr_lane *first_lane(void)
{
    return wr_engine_lanes(wr_runtime_engine(wr_runtime_get()));
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static uint64_t count_settled(void)
{
    uint64_t settled = 0;
    weir_handler_stats stats;
    for (struct wr_lane *lane = first_lane(); lane; lane = wr_lane_next(lane)) {
        wr_lane_stats_get(&stats, lane, 0);
        settled += stats.delivered;
        for (int i = 0; i < WEIR_DROPPED_MAX; i++)
            settled += stats.dropped[i];
    }
    return settled;
}

void delivery_wait(int64_t timeout_ms, bool patient)
{
    uint64_t before;
    do
        before = count_settled();
    while (weir_flush(timeout_ms) == WEIR_ERR_TIMEOUT && patient && count_settled() > before);
}

uint64_t delivery_queued(void)
{
    uint64_t queued = 0;
    weir_handler_stats stats;
    for (struct wr_lane *lane = first_lane(); lane; lane = wr_lane_next(lane)) {
        wr_lane_stats_get(&stats, lane, 0);
        queued += stats.queued;
    }
    return queued;
}

/* ---- Reporting ------------------------------------------------------------------------------- */

static void put_drops(struct wr_buffer *out, const weir_handler_stats *stats)
{
    for (int i = 0; i < WEIR_DROPPED_MAX; i++)
        if (stats->dropped[i])
            wr_buffer_put_format(out, ", %" PRIu64 " dropped (%s)", stats->dropped[i],
                                 wr_selfmetrics_drop_name(i));
}

/* The handler type's own counters. */
static void put_counters(struct wr_buffer *out, struct wr_lane *lane)
{
    struct wr_lane_counter counters[WR_LANE_COUNTERS];
    size_t count = wr_lane_stats_get_counters(lane, counters);
    for (size_t i = 0; i < count; i++) {
        wr_buffer_put_text(out, ", ");
        command_put_text(out, counters[i].name);
        wr_buffer_put_format(out, " %" PRIu64, counters[i].value);
    }
}

static void put_lane(struct wr_buffer *out, struct wr_lane *lane, const weir_handler_stats *stats)
{
    command_put_text(out, wr_lane_name(lane));
    wr_buffer_put_format(out, ": %" PRIu64 " delivered", stats->delivered);
    put_drops(out, stats);
    if (stats->recovered)
        wr_buffer_put_format(out, " (%" PRIu64 " recovered from disk)", stats->recovered);
    put_counters(out, lane);
    if (stats->queued)
        wr_buffer_put_format(out, ", %" PRIu64 " not delivered yet", stats->queued);
    if (stats->spooled)
        wr_buffer_put_format(out, ", %" PRIu64 " on disk", stats->spooled);
    wr_buffer_put_text(out, stats->failing ? ", failing\n" : "\n");
}

bool delivery_report(bool verbose)
{
    bool delivered = true;
    struct wr_buffer out = {0};
    weir_handler_stats stats;
    if (!first_lane())
        wr_buffer_put_text(&out, "the group is not routed to any handler\n");
    for (struct wr_lane *lane = first_lane(); lane; lane = wr_lane_next(lane)) {
        wr_lane_stats_get(&stats, lane, 0);
        put_lane(&out, lane, &stats);
        delivered &= stats.delivered == stats.offered + stats.recovered;
    }
    if (!verbose)
        wr_buffer_clear(&out);
    return command_write(&out) && delivered;
}
