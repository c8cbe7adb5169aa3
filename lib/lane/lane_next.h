/* step: what a lane's worker does next. All decisions are here; the worker only carries them out, and reports
 * back in outcome.h. */
#ifndef WR_LANE_NEXT_H
#define WR_LANE_NEXT_H

#include <stdint.h>

#include "lane/lane_internal.h"

enum wr_lane_next_kind {
    WR_LANE_NEXT_SLEEP, /* until work is signalled, or until_ns */
    WR_LANE_NEXT_OPEN,
    WR_LANE_NEXT_EMIT,  /* lane->flight */
    WR_LANE_NEXT_FLUSH, /* by until_ns */
    WR_LANE_NEXT_WAKE,  /* `why` */
    WR_LANE_NEXT_CLOSE,
    WR_LANE_NEXT_SEARCH,  /* for what other processes have spooled */
    WR_LANE_NEXT_SPOOL,   /* lane->spool_state.moving */
    WR_LANE_NEXT_FETCH,   /* from the spool */
    WR_LANE_NEXT_REPLACE, /* destroy the instance (it is closed), and go on with the successor */
    WR_LANE_NEXT_END,     /* destroy the instance (it is closed), and end the thread */
};

struct wr_lane_next_step {
    enum wr_lane_next_kind kind;
    int64_t until_ns;
    int why; /* enum weir_wake */
};

/* [worker, under the lock] Decides, and prepares lane->flight for EMIT. */
struct wr_lane_next_step wr_lane_next_decide(struct wr_lane *lane, int64_t now_ns);

#endif
