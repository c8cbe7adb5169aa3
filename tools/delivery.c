#include "delivery.h"

#include <inttypes.h>
#include <stdio.h>

#include <weir/weir.h>

#include "engine/engine.h"
#include "lane/lane.h"
#include "runtime/runtime.h"
#include "dispatch/selfmetrics.h"
#include "lane/lane_stats.h"

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
        for (int i = 0; i < WEIR_DROPS; i++)
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

/* ---- What became of it ----------------------------------------------------------------------- */

static void print_drops(const weir_handler_stats *stats)
{
    for (int i = 0; i < WEIR_DROPS; i++)
        if (stats->dropped[i])
            printf(", %" PRIu64 " dropped (%s)", stats->dropped[i], wr_selfmetrics_drop_name(i));
}

/* What the handler itself has counted. */
static void print_counters(struct wr_lane *lane)
{
    struct wr_lane_counter counters[WR_LANE_COUNTERS];
    size_t count = wr_lane_stats_get_counters(lane, counters);
    for (size_t i = 0; i < count; i++)
        printf(", %s %" PRIu64, counters[i].name, counters[i].value);
}

/* Prints one handler's account; false: something of it was not delivered. */
static bool report_lane(struct wr_lane *lane, bool verbose)
{
    weir_handler_stats stats;
    wr_lane_stats_get(&stats, lane, 0);
    if (verbose) {
        printf("%s: %" PRIu64 " delivered", wr_lane_name(lane), stats.delivered);
        print_drops(&stats);
        if (stats.recovered)
            printf(" (%" PRIu64 " of earlier processes were on disk)", stats.recovered);
        print_counters(lane);
        if (stats.queued)
            printf(", %" PRIu64 " not delivered yet", stats.queued);
        if (stats.spooled)
            printf(", %" PRIu64 " on disk", stats.spooled);
        puts(stats.failing ? ", failing" : "");
    }
    return stats.delivered == stats.offered + stats.recovered;
}

bool delivery_report(bool verbose)
{
    bool delivered = true;
    struct wr_lane *lane = first_lane();
    if (!lane && verbose)
        puts("no handler listens to this group");
    for (; lane; lane = wr_lane_next(lane))
        delivered &= report_lane(lane, verbose);
    return delivered;
}
