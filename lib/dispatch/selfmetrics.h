/* selfmetrics: weir's own metrics, as samples of the group "weir". They follow that group's route; the route of
 * "*" does not apply to it. [dispatcher's round] */
#ifndef WR_SELFMETRICS_H
#define WR_SELFMETRICS_H

#include <stdint.h>

#include "dispatch/dispatcher.h"
#include "lane/lane.h"

struct wr_selfmetrics {
    int64_t interval_ns;
    int64_t next_ns; /* 0: the group has no route */
};

/* Applies a configuration. */
void wr_selfmetrics_configure(struct wr_selfmetrics *selfmetrics, struct wr_dispatcher *dispatcher,
                              int64_t interval_ns, int64_t now_ns);

/* Adds the samples if they are due. Lowers *next_ns to the next time. lanes: the first of all. */
void wr_selfmetrics_tend(struct wr_selfmetrics *selfmetrics, struct wr_dispatcher *dispatcher,
                         struct wr_lane *lanes, int64_t now_ns, int64_t *next_ns);

#endif
