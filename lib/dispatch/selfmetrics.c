#include "dispatch/selfmetrics.h"

#include "os/clock.h"
#include "text/common.h"
#include "config/config.h"
#include "text/error.h"
#include "registry/series.h"
#include "registry/stream.h"
#include "lane/lane_stats.h"
#include "lane/losses.h"

static const char group_name[] = "weir";

void wr_selfmetrics_configure(struct wr_selfmetrics *selfmetrics, struct wr_dispatcher *dispatcher,
                              int64_t interval_ns, int64_t now_ns)
{
    const struct wr_config *config = dispatcher->drain.router->config;
    const struct wr_config_route *route = wr_config_find_route(config, group_name, false);
    selfmetrics->interval_ns = interval_ns;
    selfmetrics->next_ns = route && route->count ? now_ns + interval_ns : 0;
}

/* One event about one handler. */
struct report {
    struct wr_dispatcher *dispatcher;
    const char *handler;
    int64_t time_ns;
};

static void add(struct report *report, const char *reason, const char *name, uint16_t flags, uint64_t value)
{
    struct wr_registry *registry = report->dispatcher->drain.registry;
    weir_label labels[2] = {{"handler", report->handler}, {"reason", reason}};
    struct weir_stream *stream = wr_stream_get(registry, group_name, labels, reason ? 2 : 1, NULL);
    const struct weir_metric *metric = wr_series_get(registry, stream, name, flags, NULL);
    if (metric->stream->refusal)
        return;
    weir_sample sample = {
        .series = metric->series,
        .kind = WEIR_KIND_INT,
        .flags = flags,
        .time_ns = report->time_ns,
        .value.i64 = (int64_t)value,
    };
    wr_dispatcher_add(report->dispatcher, &sample, 1);
}

static void add_lane(struct report *report, const weir_handler_stats *stats)
{
    add(report, NULL, "offered", WEIR_SAMPLE_CUMULATIVE, stats->offered);
    add(report, NULL, "delivered", WEIR_SAMPLE_CUMULATIVE, stats->delivered);
    for (int i = 0; i < WEIR_DROPPED_MAX; i++)
        if (stats->dropped[i])
            add(report, wr_losses_name(i), "dropped", WEIR_SAMPLE_CUMULATIVE, stats->dropped[i]);
    add(report, NULL, "queue.bytes", 0, stats->queue_bytes);
    add(report, NULL, "queue.age.ms", 0, (uint64_t)stats->queue_age_ms);
    if (stats->summing)
        add(report, NULL, "summing", 0, stats->summing);
    add(report, NULL, "retries", WEIR_SAMPLE_CUMULATIVE, stats->retries);
    if (!stats->spool_limit && !stats->spooled)
        return;
    add(report, NULL, "recovered", WEIR_SAMPLE_CUMULATIVE, stats->recovered);
    add(report, NULL, "spooled", 0, stats->spooled);
    add(report, NULL, "spool.bytes", 0, stats->spool_bytes);
}

void wr_selfmetrics_tend(struct wr_selfmetrics *selfmetrics, struct wr_dispatcher *dispatcher,
                         struct wr_lane *lanes, int64_t now_ns, int64_t *next_ns)
{
    if (!selfmetrics->next_ns)
        return;
    if (now_ns >= selfmetrics->next_ns) {
        selfmetrics->next_ns = now_ns + selfmetrics->interval_ns;
        for (struct wr_lane *lane = lanes; lane; lane = wr_lane_next(lane)) {
            weir_handler_stats stats;
            wr_lane_stats_get(&stats, lane, now_ns);
            struct report report = {dispatcher, wr_lane_name(lane), wr_clock_wall_ns()};
            add_lane(&report, &stats);
        }
        wr_router_offer(dispatcher->drain.router, now_ns);
    }
    if (selfmetrics->next_ns < *next_ns)
        *next_ns = selfmetrics->next_ns;
}
