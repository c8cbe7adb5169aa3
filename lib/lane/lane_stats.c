#include "lane/lane_stats.h"

#include <stdio.h>
#include <string.h>

#include "lane/lane_internal.h"
#include "text/common.h"

static int64_t find_ms(int64_t since_ns, int64_t now_ns)
{
    return now_ns > since_ns ? (now_ns - since_ns) / WR_NS_PER_MS : 0;
}

static int64_t find_age_ms(const struct wr_lane *lane, int64_t now_ns)
{
    const struct wr_range *oldest = wr_lane_ledger_flight(&lane->ledger);
    if (!oldest && lane->ledger.moving.segment)
        oldest = &lane->ledger.moving;
    if (!oldest && !wr_queue_is_empty(&lane->ledger.queue))
        oldest = wr_queue_front(&lane->ledger.queue);
    return oldest ? find_ms(oldest->since_ns, now_ns) : 0;
}

static void fill_stats(weir_handler_stats *stats, const struct wr_lane *lane, int64_t now_ns)
{
    *stats = (weir_handler_stats){
        .size = sizeof *stats,
        .offered = lane->ledger.offered,
        .recovered = lane->ledger.recovered,
        .delivered = lane->ledger.delivered,
        .queued = wr_lane_ledger_queued(&lane->ledger),
        .queue_bytes = wr_lane_ledger_queued_bytes(&lane->ledger),
        .queue_age_ms = find_age_ms(lane, now_ns),
        .spooled = wr_lane_ledger_spooled(&lane->ledger) + lane->ledger.left_in_journal,
        .summing = lane->ledger.summing,
        .spool_bytes = lane->spool_state.bytes,
        .spool_limit = lane->settings.spool_limit,
        .retries = lane->delivery.retries,
        .faults = lane->delivery.faults,
        .failing = wr_delivery_is_failing(&lane->delivery),
        .open = wr_delivery_is_open(&lane->delivery),
        .last_error_ms = lane->delivery.last_error_ns ? find_ms(lane->delivery.last_error_ns, now_ns) : -1,
    };
    memcpy(stats->dropped, lane->ledger.dropped, sizeof stats->dropped);
    if (lane->delivery.last_error_ns)
        memcpy(stats->last_error, lane->delivery.last_error, sizeof stats->last_error);
}

void wr_lane_stats_get(weir_handler_stats *stats, struct wr_lane *lane, int64_t now_ns)
{
    sigset_t signals;
    wr_lane_lock_from_program(lane, &signals);
    fill_stats(stats, lane, now_ns);
    wr_lane_unlock_from_program(lane, &signals);
}

static const char *find_type(const struct wr_lane *lane)
{
    const struct wr_lane_handler *handler = lane->handler.instance ? &lane->handler : &lane->successor;
    return handler->instance ? handler->type : "";
}

static void fill_status(struct wr_lane_status *status, const struct wr_lane *lane, int64_t now_ns)
{
    *status = (struct wr_lane_status){
        .name = lane->name,
        .queue_bound = lane->settings.queue_bytes,
        .end_reason = wr_lane_ending(lane),
        .full = lane->pressure.state == WR_BACKPRESSURE_FULL,
        .stalled = lane->pressure.state == WR_BACKPRESSURE_STALLED,
        .failing_since_ns = wr_delivery_is_failing(&lane->delivery) ? lane->delivery.failing_since_ns : 0,
        .busy_since_ns = lane->worker.busy_since_ns,
    };
    fill_stats(&status->stats, lane, now_ns);
    snprintf(status->type, sizeof status->type, "%s", find_type(lane));
}

void wr_lane_stats_get_status(struct wr_lane_status *status, struct wr_lane *lane, int64_t now_ns)
{
    sigset_t signals;
    wr_lane_lock_from_program(lane, &signals);
    fill_status(status, lane, now_ns);
    wr_lane_unlock_from_program(lane, &signals);
}

size_t wr_lane_stats_get_counters(struct wr_lane *lane, struct wr_lane_counter *counters)
{
    sigset_t signals;
    wr_lane_lock_from_program(lane, &signals);
    size_t count = lane->counter_count;
    memcpy(counters, lane->counters, count * sizeof *counters);
    wr_lane_unlock_from_program(lane, &signals);
    return count;
}
