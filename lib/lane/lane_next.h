/* lane_next: decides what a lane's worker does next. lane_worker.c carries it out and reports to outcome.h. */
#ifndef WR_LANE_NEXT_H
#define WR_LANE_NEXT_H

#include <stdint.h>

#include "lane/lane_internal.h"

enum wr_lane_next_kind {
    WR_LANE_NEXT_SLEEP, /* until lane->worker.work is signalled, or until_ns */
    WR_LANE_NEXT_OPEN,
    WR_LANE_NEXT_EMIT,  /* lane->ledger.flight */
    WR_LANE_NEXT_FLUSH, /* by until_ns */
    WR_LANE_NEXT_WAKE,  /* `why` */
    WR_LANE_NEXT_CLOSE,
    WR_LANE_NEXT_SEARCH,  /* for samples that other processes have spooled */
    WR_LANE_NEXT_SPOOL,   /* lane->ledger.moving */
    WR_LANE_NEXT_FETCH,   /* from the spool */
    WR_LANE_NEXT_REPLACE, /* destroy the instance, which is closed, and continue with the successor */
    WR_LANE_NEXT_END,     /* destroy the instance, which is closed, and end the thread */
};

struct wr_lane_next_step {
    enum wr_lane_next_kind kind;
    int64_t until_ns;
    int why; /* enum weir_wake */
};

/* Decides, and prepares lane->ledger.flight for EMIT and spool_state.moving for SPOOL. Thread: worker. Caller
 * holds the lane lock. */
struct wr_lane_next_step wr_lane_next_decide(struct wr_lane *lane, int64_t now_ns);

/* Moves the next batch into flight. Returns false if nothing is left that the handler accepts. */
bool wr_lane_next_load(struct wr_lane *lane, int64_t now_ns);

#endif
