/* step: what a lane's worker does next. All decisions are here; the worker only carries them out, and reports
 * back in outcome.h. */
#ifndef WR_STEP_H
#define WR_STEP_H

#include <stdint.h>

#include "lane.h"

enum wr_step_kind {
    WR_STEP_SLEEP, /* until work is signalled, or until_ns */
    WR_STEP_OPEN,
    WR_STEP_EMIT,  /* lane->flight */
    WR_STEP_FLUSH, /* by until_ns */
    WR_STEP_WAKE,  /* `why` */
    WR_STEP_CLOSE,
    WR_STEP_SEARCH,  /* for what other processes have spooled */
    WR_STEP_SPOOL,   /* lane->stash.moving */
    WR_STEP_FETCH,   /* from the spool */
    WR_STEP_REPLACE, /* destroy the instance (it is closed), and go on with the successor */
    WR_STEP_END,     /* destroy the instance (it is closed), and end the thread */
};

struct wr_step {
    enum wr_step_kind kind;
    int64_t until_ns;
    int why; /* enum weir_wake */
};

/* [worker, under the lock] Decides, and prepares lane->flight for EMIT. */
struct wr_step wr_step_next(struct wr_lane *lane, int64_t now_ns);

#endif
