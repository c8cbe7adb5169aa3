/* lane_mark: what has become of everything that a lane was given before some moment, without hurrying the lane.
 */
#ifndef WR_LANE_MARK_H
#define WR_LANE_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "lane/lane.h"

/* Everything that the lane had been given when it was taken. All zeros: nothing. */
struct wr_lane_bound {
    uint64_t position; /* of the next sample */
    uint64_t summary;  /* with sums: the number of the next summary */
    bool is_taken;
    bool sums; /* values were in the open interval: the position is that after its summaries */
};

enum wr_lane_standing { WR_LANE_PENDING, WR_LANE_STORED, WR_LANE_SETTLED };

/* [source] Caller holds the round lock. */
void wr_lane_bound_take(struct wr_lane *lane, struct wr_lane_bound *bound);

/* [dispatcher's round] Whether no thread of the lane has anything of it in its hands any more, nor gets it
 * again by the ids of now: of a lane that has ended, what is left on its disk is for later. */
bool wr_lane_bound_is_past(struct wr_lane *lane, struct wr_lane_bound *bound);

/* [source] What has become of what was there. *dropped: how many values the lane has dropped so far. */
enum wr_lane_standing wr_lane_bound_check(struct wr_lane *lane, struct wr_lane_bound *bound, uint64_t *dropped);

#endif
