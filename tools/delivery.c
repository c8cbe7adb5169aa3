#include "delivery.h"

#include <inttypes.h>
#include <stdio.h>

#include <weir/weir.h>

#include "runtime/runtime.h"
#include "dispatch/selfmetrics.h"
#include "status/ledger.h"

/* ---- Waiting --------------------------------------------------------------------------------- */

static uint64_t count_settled(void)
{
    uint64_t settled = 0;
    weir_handler_stats stats;
    const char *name;
    for (size_t i = 0; (name = weir_get_handler_name(i)); i++) {
        weir_get_handler_stats(name, &stats, sizeof stats);
        settled += stats.delivered;
        for (int j = 0; j < WEIR_DROPS; j++)
            settled += stats.dropped[j];
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
    const char *name;
    for (size_t i = 0; (name = weir_get_handler_name(i)); i++) {
        weir_get_handler_stats(name, &stats, sizeof stats);
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
static void print_counters(const char *handler)
{
    struct wr_lane_counter counters[WR_LANE_COUNTERS];
    size_t count = wr_ledger_read_counters(wr_runtime_engine(wr_runtime_get()), handler, counters);
    for (size_t i = 0; i < count; i++)
        printf(", %s %" PRIu64, counters[i].name, counters[i].value);
}

/* Prints one handler's account; false: something of it was not delivered. */
static bool report_handler(const char *handler, bool verbose)
{
    weir_handler_stats stats;
    weir_get_handler_stats(handler, &stats, sizeof stats);
    if (verbose) {
        printf("%s: %" PRIu64 " delivered", handler, stats.delivered);
        print_drops(&stats);
        if (stats.recovered)
            printf(" (%" PRIu64 " of earlier processes were on disk)", stats.recovered);
        print_counters(handler);
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
    const char *name;
    if (!weir_get_handler_name(0) && verbose)
        puts("no handler listens to this group");
    for (size_t i = 0; (name = weir_get_handler_name(i)); i++)
        delivered &= report_handler(name, verbose);
    return delivered;
}
