/* selfmetrics: weir's own metrics, as samples of the group "weir". They follow that group's route; the route of
 * "*" does not apply to it. [dispatcher's round] */
#ifndef WR_SELFMETRICS_H
#define WR_SELFMETRICS_H

#include <stdint.h>

#include "dispatch/dispatcher.h"
#include "lane/lane.h"
#include "lane/lane_stats.h"

/* Those of its type, and the core's own. */
enum { WR_SELFMETRICS_SOURCE_COUNTERS = WR_LANE_COUNTERS + 5 };

/* What a source has counted. */
struct wr_selfmetrics_source {
    weir_source_stats stats;
    bool is_text; /* it has lines and bytes */
    struct wr_lane_counter counters[WR_SELFMETRICS_SOURCE_COUNTERS];
    size_t counter_count;
};

/* How to read what sources have counted. read: NULL: there are none. It never waits; returns false if there are
 * not that many, or if it would have to wait. */
struct wr_selfmetrics_sources {
    bool (*read)(void *ctx, size_t index, struct wr_selfmetrics_source *source);
    void *ctx;
};

struct wr_selfmetrics {
    int64_t interval_ns;
    int64_t next_ns; /* 0: the group has no route */
    struct wr_selfmetrics_sources sources;
};

/* Applies a configuration. */
void wr_selfmetrics_configure(struct wr_selfmetrics *selfmetrics, struct wr_dispatcher *dispatcher,
                              int64_t interval_ns, int64_t now_ns);

/* Adds the samples if they are due. Lowers *next_ns to the next time. lanes: the first of all. */
void wr_selfmetrics_tend(struct wr_selfmetrics *selfmetrics, struct wr_dispatcher *dispatcher,
                         struct wr_lane *lanes, int64_t now_ns, int64_t *next_ns);

#endif
