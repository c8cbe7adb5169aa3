/* lane_stats: a lane's counters and state at one moment. [any thread] */
#ifndef WR_LANE_STATS_H
#define WR_LANE_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "lane/lane.h"

/* The counters, as programs see them: an exact snapshot. */
void wr_lane_stats_get(weir_handler_stats *stats, struct wr_lane *lane, int64_t now_ns);

enum { WR_LANE_TYPE_SIZE = 64, WR_LANE_COUNTERS = 32 };

/* Times are monotonic; 0: does not apply. */
struct wr_lane_status {
    const char *name; /* of the handler; valid until the process ends */
    char type[WR_LANE_TYPE_SIZE];
    weir_handler_stats stats;
    uint64_t queue_bound; /* bytes */
    int end_reason;       /* enum weir_drop: why all further samples are dropped; WR_LANE_LIVES: they are not */
    bool full, stalled;   /* calls wait for it; they no longer do, and what does not fit is dropped */
    int64_t failing_since_ns;
    int64_t busy_since_ns; /* the handler was called and has not returned */
};

/* All of it is of the same moment. */
void wr_lane_stats_get_status(struct wr_lane_status *status, struct wr_lane *lane, int64_t now_ns);

/* A counter of the handler's own, by host->count. */
struct wr_lane_counter {
    char name[48]; /* the first bytes of it */
    uint64_t value;
};

/* Copies the counters, at most WR_LANE_COUNTERS, and returns how many there are. */
size_t wr_lane_stats_get_counters(struct wr_lane *lane, struct wr_lane_counter *counters);

#endif
