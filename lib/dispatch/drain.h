/* taking: records go from the rings to the segments of the feeds: the inside of the dispatcher's round.
 *
 * Ticks become wall time here, and metadata goes where the segment keeps it. With a journal this is where its
 * rounds are committed. [dispatcher's round] */
#ifndef WR_DRAIN_H
#define WR_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "producer/producer.h"
#include "registry/registry.h"
#include "dispatch/router.h"
#include "segment/segment.h"
#include "os/timeline.h"

/* still_ns while time goes its way. */
#define WR_DRAIN_REAL_TIME INT64_C(-1)

struct wr_drain {
    struct wr_registry *registry;
    struct wr_router *router; /* NULL: not configured yet */
    struct wr_segment_pool pool;
    struct wr_timeline timeline;
    int64_t still_ns; /* tests: the time that values get which have none of their own */
    char text[WR_PRODUCER_SLOTS / WR_RING_QUARTERS * sizeof(weir_sample)]; /* metadata on its way */
    uint64_t unrouted; /* values taken that nobody listened to */
};

/* Takes what was published before `tail`. Answers how many samples that were. */
uint64_t wr_drain_ring(struct wr_drain *taking, struct wr_producer *producer, uint64_t tail, int64_t now_ns);

/* One step for the journal, if there is one: what of the ring lies before the position is in segments, and they
 * hold that. Until then no lane may see it, and the ring's writer must not use its slots again. ring NULL: what
 * the feeds hold came from elsewhere. */
void wr_drain_commit(struct wr_drain *taking, struct wr_ring *ring, uint64_t position);

/* [the ring's writer] Moves a ring into the journal, as far as there is one, and space for it. false: that has
 * to wait until the ring is empty. */
bool wr_drain_renew(struct wr_drain *taking, struct wr_ring *ring);

#endif
