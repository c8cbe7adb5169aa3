/* outcome: what a handler's answer means for its lane. [worker, under the lock] */
#ifndef WR_OUTCOME_H
#define WR_OUTCOME_H

#include <stdint.h>

#include "lane/lane_internal.h"
#include "lane/lane_worker.h"

/* The handler was asked to open. */
void wr_outcome_of_open(struct wr_lane *lane, weir_outcome *outcome, int64_t now_ns);

/* The handler was given lane->flight. omissions: NULL if the format leaves out none. */
void wr_outcome_of_emit(struct wr_lane *lane, weir_outcome *outcome, const struct wr_lane_omissions *omissions,
                        int64_t now_ns);

/* The handler was asked to flush; `wanted`: lane->flush_wanted at that time. */
void wr_outcome_of_flush(struct wr_lane *lane, weir_outcome *outcome, uint64_t wanted, int64_t now_ns);

/* The handler was woken. */
void wr_outcome_of_wake(struct wr_lane *lane, weir_outcome *outcome, int why, int64_t now_ns);

/* The handler was closed. */
void wr_outcome_of_close(struct wr_lane *lane);

#endif
