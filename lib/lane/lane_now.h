/* lane_now: a batch that the thread of a synchronous call delivers itself, in place of the worker.
 *
 *     wr_lane_offer with a wr_lane_now -> emit_now is called, without locks -> wr_lane_now_finish
 *
 * In between the lane is in the same state as while its worker is inside emit, so a fork, a shutdown, a reload
 * and a flush wait for the caller as they do for a busy worker. The worker is asleep when the batch is claimed;
 * if it is woken, it does nothing but sleep again until the caller has finished. */
#ifndef WR_LANE_NOW_H
#define WR_LANE_NOW_H

#include <stdbool.h>
#include <stdint.h>

#include "lane/lane.h"
#include "lane/lane_worker.h"

/* What an offer has claimed for the calling thread. All zeros: nothing. */
struct wr_lane_now {
    struct wr_lane *lane; /* NULL: nothing */
    struct wr_lane_call call;
};

/* [any thread] emit_now has returned. outcome: NOT_NOW leaves the rest to the worker. Messages are left to the
 * worker, too: the program's log function must not run here. */
void wr_lane_now_finish(const struct wr_lane_now *now, weir_outcome *outcome,
                        const struct wr_lane_omissions *omissions);

/* ---- Caller holds the lock ------------------------------------------------------------------- */

/* Claims what was just queued, `count` samples, for the calling thread, if the handler can deliver now and
 * nothing else is to be done before. */
bool wr_lane_now_claim(struct wr_lane *lane, uint64_t count, int64_t now_ns, struct wr_lane_now *now);

#endif
