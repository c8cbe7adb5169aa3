/* outcome: applies the outcomes of a handler's callbacks to its lane. Thread: worker. Caller holds the lane
 * lock. */
#ifndef WR_OUTCOME_H
#define WR_OUTCOME_H

#include <stdint.h>

#include "lane/lane_internal.h"
#include "lane/lane_worker.h"

/* open has returned. */
void wr_outcome_apply_open(struct wr_lane *lane, weir_outcome *outcome, int64_t now_ns);

/* emit has returned, for lane->ledger.flight. omissions: NULL if the format leaves out nothing. */
void wr_outcome_apply_emit(struct wr_lane *lane, weir_outcome *outcome,
                           const struct wr_lane_omissions *omissions, int64_t now_ns);

/* flush has returned. wanted: lane->flush_wanted when it was called. */
void wr_outcome_apply_flush(struct wr_lane *lane, weir_outcome *outcome, uint64_t wanted, int64_t now_ns);

/* wake has returned. */
void wr_outcome_apply_wake(struct wr_lane *lane, weir_outcome *outcome, int why, int64_t now_ns);

/* close has returned. */
void wr_outcome_apply_close(struct wr_lane *lane);

#endif
