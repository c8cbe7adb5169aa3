#include "dispatch/selfmetrics.h"

#include "os/clock.h"
#include "text/common.h"
#include "config/config.h"
#include "text/error.h"
#include "registry/series.h"
#include "registry/stream.h"
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

/* The samples about one handler or source. */
struct report {
    struct wr_dispatcher *dispatcher;
    const char *kind, *name; /* the label: "handler" or "source" */
    int64_t time_ns;
};

static void add(struct report *report, const char *reason, const char *name, uint16_t flags, uint64_t value)
{
    struct wr_registry *registry = report->dispatcher->drain.registry;
    weir_label labels[2] = {{report->kind, report->name}, {"reason", reason}};
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
    wr_dispatcher_add(report->dispatcher, &sample);
}

static void add_total(struct report *report, const char *name, uint64_t value)
{
    add(report, NULL, name, WEIR_SAMPLE_CUMULATIVE, value);
}

static void add_counters(struct report *report, const struct wr_lane_counter *counters, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add_total(report, counters[i].name, counters[i].value);
}

static void add_source(struct report *report, const struct wr_selfmetrics_source *source)
{
    if (source->is_text) {
        add_total(report, "lines", source->stats.lines);
        add_total(report, "bad_lines", source->stats.bad_lines);
        add_total(report, "bytes", source->stats.bytes);
    }
    add_total(report, "records", source->stats.records);
    add_total(report, "added", source->stats.added);
    add_total(report, "refused", source->stats.refused);
    add_counters(report, source->counters, source->counter_count);
}

static void add_sources(const struct wr_selfmetrics_sources *sources, struct wr_dispatcher *dispatcher)
{
    struct wr_selfmetrics_source source;
    for (size_t i = 0; sources->read && sources->read(sources->ctx, i, &source); i++) {
        struct report report = {dispatcher, "source", source.stats.name, wr_clock_wall_ns()};
        add_source(&report, &source);
    }
}

static void add_lane(struct report *report, const weir_handler_stats *stats)
{
    add_total(report, "offered", stats->offered);
    add_total(report, "delivered", stats->delivered);
    for (int i = 0; i < WEIR_DROPPED_MAX; i++)
        if (stats->dropped[i])
            add(report, wr_losses_name(i), "dropped", WEIR_SAMPLE_CUMULATIVE, stats->dropped[i]);
    add(report, NULL, "queue.bytes", 0, stats->queue_bytes);
    add(report, NULL, "queue.age.ms", 0, (uint64_t)stats->queue_age_ms);
    if (stats->summing)
        add(report, NULL, "summing", 0, stats->summing);
    add_total(report, "retries", stats->retries);
    if (!stats->spool_limit && !stats->spooled)
        return;
    add_total(report, "recovered", stats->recovered);
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
            struct wr_lane_counter counters[WR_LANE_COUNTERS];
            wr_lane_stats_get(&stats, lane, now_ns);
            struct report report = {dispatcher, "handler", wr_lane_name(lane), wr_clock_wall_ns()};
            add_lane(&report, &stats);
            add_counters(&report, counters, wr_lane_stats_get_counters(lane, counters));
        }
        add_sources(&selfmetrics->sources, dispatcher);
        wr_router_offer(dispatcher->drain.router, now_ns);
    }
    if (selfmetrics->next_ns < *next_ns)
        *next_ns = selfmetrics->next_ns;
}
