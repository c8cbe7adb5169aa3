/* ahead: the service ahead/1: what a handler is going to get next, while it is inside emit. */
#ifndef WR_AHEAD_H
#define WR_AHEAD_H

#include <weir/handler.h>

#include "lane/lane.h"
#include "lane/lane_worker.h"
#include "segment/batch.h"

struct wr_label_set;

/* All zeros: nothing is looked at. Of one worker. */
struct wr_ahead {
    bool is_on;
    uint64_t position;           /* of the lane: the next sample to look at */
    struct wr_range range;       /* what was returned last, with a reference to its segment; NULL: nothing */
    struct wr_label_set *labels; /* of it, with a reference; NULL: none */
    struct wr_batch_core core;
};

/* emit is about to be called: begins behind its batch. */
void wr_ahead_begin(struct wr_ahead *ahead, const struct wr_lane_call *call,
                    const struct wr_registry *registry);

/* emit has returned. */
void wr_ahead_end(struct wr_ahead *ahead);

/* Sets *next to the samples behind those that were returned last, valid until the next call or wr_ahead_end.
 * Returns false if there are none yet. */
bool wr_ahead_next(struct wr_ahead *ahead, struct wr_lane *lane, weir_batch *next);

#endif
