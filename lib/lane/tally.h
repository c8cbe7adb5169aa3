/* tally: a handler's side of the ledger, as programs are shown it. */
#ifndef WR_TALLY_H
#define WR_TALLY_H

#include <stdint.h>

#include <weir/weir.h>

struct wr_lane;

/* An exact snapshot. */
void wr_tally_take(weir_handler_stats *stats, struct wr_lane *lane, int64_t now_ns);

/* [under the lane's lock] The same for whoever looks at more than that. */
void wr_tally_fill(weir_handler_stats *stats, const struct wr_lane *lane, int64_t now_ns);

#endif
