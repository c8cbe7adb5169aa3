/* timeline: ticks of the processor's counter as wall time.
 *
 * Pairs of (ticks, wall time) are taken again and again; a tick between two pairs is on the straight line
 * between them. So the counter's speed need not be known, slews of the wall clock are followed by themselves,
 * and time is continuous: it runs backwards only where the wall clock itself was set back. Used by one thread
 * at a time. */
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
    uint64_t speed; /* nanoseconds a tick, in 2^-32; 0: not known yet */
};

/* Takes the first pair. */
void wr_timeline_start(struct wr_timeline *timeline);

/* Takes a further pair, if the latest is old enough for it to tell anything. */
void wr_timeline_mark(struct wr_timeline *timeline);

/* The same with a given pair; for tests. */
void wr_timeline_add(struct wr_timeline *timeline, struct wr_timeline_pair pair);

/* Wall time of a tick. Whatever a damaged journal says, it is some time. */
static inline int64_t wr_timeline_wall_ns(const struct wr_timeline *timeline, uint64_t ticks)
{
    wr_int128 distance = (wr_int128)(int64_t)(ticks - timeline->from.ticks) * (wr_int128)timeline->speed;
    return (int64_t)((uint64_t)timeline->from.wall_ns + (uint64_t)(distance >> 32));
}

#endif
