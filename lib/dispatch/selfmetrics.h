/* selfmetrics: what weir measures of itself, as samples of the group "weir": they go where the configuration
 * sends that group, and only there. [dispatcher's round] */
#ifndef WR_SELFMETRICS_H
#define WR_SELFMETRICS_H

#include <stdint.h>

#include "dispatch/dispatcher.h"
#include "lane/lane.h"

struct wr_selfmetrics {
    int64_t interval_ns;
    int64_t next_ns; /* 0: nobody listens */
};

/* A configuration comes into force. */
void wr_selfmetrics_configure(struct wr_selfmetrics *selfmetrics, struct wr_dispatcher *dispatcher,
                              int64_t interval_ns, int64_t now_ns);

/* Adds the samples if it is time to. Lowers *next_ns. lanes: the first of all. */
void wr_selfmetrics_tend(struct wr_selfmetrics *selfmetrics, struct wr_dispatcher *dispatcher,
                         struct wr_lane *lanes, int64_t now_ns, int64_t *next_ns);

/* What a reason for dropping is called; NULL: there is none of that number. */
const char *wr_selfmetrics_drop_name(int why);

#endif
