/* reclaim: makes the streams of label sets that have ended ready for other label sets, in the steps that
 * registry/reuse.h describes. It never waits: each round takes at most one step, and only where what it needs
 * has happened. While something prevents that, such as a destination that takes nothing, or values that are
 * left in a journal, label sets get streams of their own. */
#ifndef WR_RECLAIM_H
#define WR_RECLAIM_H

#include <stdint.h>

#include "dispatch/dispatcher.h"
#include "lane/lane_mark.h"
#include "producer/producer.h"

enum { WR_RECLAIM_LEAST = 256 }; /* ended label sets that are worth the steps */

enum wr_reclaim_step {
    WR_RECLAIM_NOTHING,
    WR_RECLAIM_CALLS,     /* waits for the calls that may have found a stream before it was leaving */
    WR_RECLAIM_ROUND,     /* for a round that takes what they have added */
    WR_RECLAIM_SUMMARIES, /* for the last summaries */
    WR_RECLAIM_LANES,     /* for the lanes to be done with all of that */
    WR_RECLAIM_LAST_CALLS /* for calls that have found a stream before it left the table */
};

/* All zeros: nothing is in progress. */
struct wr_reclaim {
    enum wr_reclaim_step step;
    uint32_t reads[WR_PRODUCERS_MOST];
    struct wr_lane_bound *bounds; /* of the lanes that there were, the oldest first; in pages */
    uint32_t bound_room, bound_count;
};

/* [dispatcher's round, at its end] lanes: the first of all lanes. */
void wr_reclaim_tend(struct wr_reclaim *reclaim, struct wr_dispatcher *dispatcher, struct wr_lane *lanes);

#endif
