/* glance: how a handler is doing at one moment, for those who show it to people. */
#ifndef WR_GLANCE_H
#define WR_GLANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "lane/lane.h"

enum { WR_GLANCE_TYPE_ROOM = 64 };

/* Times are monotonic; 0: does not apply. */
struct wr_glance {
    const char *name; /* the lane's: valid until the process ends */
    char type[WR_GLANCE_TYPE_ROOM];
    weir_handler_stats stats;
    uint64_t queue_bound; /* bytes */
    int ending;           /* enum weir_drop: why all that comes is dropped; WR_LANE_LIVES */
    bool full, stalled;   /* calls wait for it; they do not any more */
    int64_t failing_since_ns;
    int64_t busy_since_ns; /* the handler was called, and has not come back */
    int64_t reason_ns;     /* of its last trouble, whatever became of it */
    char reason[sizeof((weir_outcome *)0)->reason];
};

/* [any thread] All of it is of one moment. */
void wr_glance_take(struct wr_glance *glance, struct wr_lane *lane, int64_t now_ns);

#endif
