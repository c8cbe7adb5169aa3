/* timeline: converts ticks of the processor's counter to wall time.
 *
 * Pairs of (ticks, wall time) are taken repeatedly, and ticks are interpolated linearly. So the counter's rate
 * need not be known, slewing of the wall clock is followed automatically, and time is continuous: it runs
 * backwards only if the wall clock itself was set back. Not thread-safe. */
#ifndef WR_TIMELINE_H
#define WR_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "text/common.h"

struct wr_timeline_pair {
    uint64_t ticks;
    int64_t wall_ns;
};

struct wr_timeline {
    struct wr_timeline_pair from, latest;
    uint64_t speed; /* nanoseconds per tick, in units of 2^-32; 0: not known yet */
};

/* Takes the first pair. */
void wr_timeline_start(struct wr_timeline *timeline);

/* Takes another pair, if the latest is old enough for a useful rate. */
void wr_timeline_mark(struct wr_timeline *timeline);

/* Adds a given pair; public for tests. */
void wr_timeline_add(struct wr_timeline *timeline, struct wr_timeline_pair pair);

/* Converts ticks to wall time. For ticks from a damaged journal the result is any time; overflow is defined. */
static inline int64_t wr_timeline_wall_ns(const struct wr_timeline *timeline, uint64_t ticks)
{
    wr_int128 distance = (wr_int128)(int64_t)(ticks - timeline->from.ticks) * (wr_int128)timeline->speed;
    return (int64_t)((uint64_t)timeline->from.wall_ns + (uint64_t)(distance >> 32));
}

#endif
