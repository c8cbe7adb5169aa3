#include "delivery.h"

#include <inttypes.h>

#include <weir/weir.h>

#include "command.h"
#include "engine/engine.h"
#include "lane/lane_stats.h"
#include "lane/losses.h"
#include "os/log.h"
#include "runtime/runtime.h"
#include "status/ledger.h"
#include "status/report.h"
#include "text/buffer.h"

/* ---- Waiting --------------------------------------------------------------------------------- */

static uint64_t count_settled(void)
{
    uint64_t settled = 0;
    weir_handler_stats stats;
    const char *name;
    for (size_t i = 0; (name = weir_get_handler_name(i)); i++) {
        weir_get_handler_stats(name, &stats, sizeof stats);
        settled += stats.delivered;
        for (int j = 0; j < WEIR_DROPPED_MAX; j++)
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

bool delivery_has_ended(void)
{
    struct wr_lane *lane = wr_engine_lanes(wr_runtime_engine(wr_runtime_get()));
    struct wr_lane_status status = {.end_reason = WR_LANE_LIVES};
    for (; lane; lane = wr_lane_next(lane)) {
        wr_lane_stats_get_status(&status, lane, 0);
        if (status.end_reason != WEIR_DROPPED_FAILED)
            return false;
    }
    return status.end_reason == WEIR_DROPPED_FAILED;
}

int64_t delivery_timeout_ns(void)
{
    uint64_t generation;
    struct wr_config *config = wr_engine_config(wr_runtime_engine(wr_runtime_get()), &generation);
    int64_t timeout_ns = config->settings.shutdown_timeout_ns;
    wr_config_drop(config);
    return timeout_ns;
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

/* ---- Reporting ------------------------------------------------------------------------------- */

static void put_drops(struct wr_buffer *out, const weir_handler_stats *stats)
{
    for (int i = 0; i < WEIR_DROPPED_MAX; i++)
        if (stats->dropped[i])
            wr_buffer_put_format(out, ", %" PRIu64 " dropped (%s)", stats->dropped[i], wr_losses_name(i));
}

/* The handler type's own counters. */
static void put_counters(struct wr_buffer *out, const char *handler)
{
    struct wr_lane_counter counters[WR_LANE_COUNTERS];
    size_t count = wr_ledger_read_counters(wr_runtime_engine(wr_runtime_get()), handler, counters);
    for (size_t i = 0; i < count; i++) {
        wr_buffer_put_text(out, ", ");
        command_put_text(out, counters[i].name);
        wr_buffer_put_format(out, " %" PRIu64, counters[i].value);
    }
}

void delivery_put(struct wr_buffer *out, const char *handler, const weir_handler_stats *stats)
{
    command_put_text(out, handler);
    wr_buffer_put_format(out, ": %" PRIu64 " delivered", stats->delivered);
    put_drops(out, stats);
    if (stats->recovered)
        wr_buffer_put_format(out, " (%" PRIu64 " recovered from disk)", stats->recovered);
    put_counters(out, handler);
    if (stats->queued)
        wr_buffer_put_format(out, ", %" PRIu64 " not delivered yet", stats->queued);
    if (stats->spooled)
        wr_buffer_put_format(out, ", %" PRIu64 " on disk", stats->spooled);
    wr_buffer_put_text(out, stats->failing ? ", failing\n" : "\n");
}

bool delivery_warn_of_unrouted(void)
{
    weir_stats stats;
    struct wr_engine *engine = wr_runtime_engine(wr_runtime_get());
    weir_get_stats(&stats, sizeof stats);
    if (stats.unrouted && !wr_log_wants(engine->log, WEIR_LOG_INFO)) /* at that level the ledger contains it */
        wr_report_unrouted(engine, WEIR_LOG_WARNING);
    return stats.unrouted;
}

bool delivery_report(bool verbose)
{
    bool delivered = true;
    struct wr_buffer out = {0};
    weir_handler_stats stats;
    const char *name;
    if (!weir_get_handler_name(0))
        wr_buffer_put_text(&out, "the group is not routed to any handler\n");
    for (size_t i = 0; (name = weir_get_handler_name(i)); i++) {
        weir_get_handler_stats(name, &stats, sizeof stats);
        delivery_put(&out, name, &stats);
        delivered &= stats.delivered == stats.offered + stats.recovered;
    }
    if (!verbose)
        wr_buffer_clear(&out);
    return command_write(&out) && delivered;
}
