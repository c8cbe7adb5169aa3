/* deliver: settles the samples of a lane without a worker, as its handler would. */
#ifndef DELIVER_H
#define DELIVER_H

#include "lane/lane_internal.h"

/* Delivers the lane's oldest samples: at most `most`, but a whole event. The queue is not empty. check: called
 * with the samples before; may be NULL. Returns the position after them. */
static inline uint64_t deliver_oldest(struct wr_lane *lane, uint32_t most,
                                      void (*check)(const struct wr_range *range))
{
    struct wr_range range = wr_queue_take(&lane->ledger.queue, most, UINT64_MAX);
    uint64_t end = range.position + range.count;
    if (check)
        check(&range);
    wr_range_settle(&range, range.count);
    lane->ledger.delivered += wr_range_values(&range);
    wr_segment_drop(range.segment);
    return end;
}

#endif
