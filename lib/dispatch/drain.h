/* drain: copies samples from the rings to the segments of the feeds. [dispatcher's round]
 *
 * Ticks are converted to wall time here, and metadata is moved to the segment's notes. With a journal, its
 * rounds are committed here. */
#ifndef WR_DRAIN_H
#define WR_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "producer/producer.h"
#include "registry/registry.h"
#include "dispatch/router.h"
#include "dispatch/taken.h"
#include "os/slab.h"
#include "segment/segment.h"
#include "os/timeline.h"

/* still_ns when the real time is used. */
#define WR_DRAIN_REAL_TIME INT64_C(-1)

struct wr_drain {
    struct wr_registry *registry;
    struct wr_router *router; /* NULL: not configured yet */
    struct wr_segment_pool pool;
    struct wr_timeline timeline;
    struct wr_lane_now *now; /* of the thread that drains its own ring, for its synchronous call; else NULL */
    int64_t still_ns;        /* tests: the time of values that have none of their own */
    int64_t switched_ns;     /* wall clock: not after any value that the router takes */
    int64_t round_ns;        /* wall clock when the round began; with a journal */
    struct wr_taken taken;   /* of a cell, with a journal */
    struct wr_slab slab;     /* of taken */
    /* metadata, between ring and segment */
    char text[WR_PRODUCER_SLOTS / WR_RING_QUARTERS * sizeof(weir_sample)];
    struct wr_mapping mapping; /* of the present event */
    uint64_t unrouted;         /* values taken from rings whose group had no route by then */
};

/* Takes what was published before `tail`. Returns the number of samples. */
uint64_t wr_drain_ring(struct wr_drain *drain, struct wr_producer *producer, uint64_t tail, int64_t now_ns);

/* Takes what is in a thread's cells. Returns the number of values. */
uint64_t wr_drain_cells(struct wr_drain *drain, struct wr_cells *cells);

/* The same of one series. */
uint64_t wr_drain_cell(struct wr_drain *drain, struct wr_cells *cells, uint32_t series);

/* Adds a sample that is in no ring. */
void wr_drain_add(struct wr_drain *drain, const weir_sample *sample);

/* Commits a round of the journal, if there is one: everything in the ring before the position is in segments.
 * Until then no lane may see these samples, and the writer of the ring must not reuse its slots. ring NULL: the
 * new samples in the feeds came from no ring. */
void wr_drain_commit(struct wr_drain *drain, struct wr_ring *ring, uint64_t position);

/* [producer] Moves its ring and its cells into the journal, if there is one with space. Returns false if the
 * ring is not empty, which it must be. */
bool wr_drain_renew(struct wr_drain *drain, struct wr_producer *producer);

/* [producer, in a call] Makes the file that its cells want, if there is a journal with space. */
void wr_drain_make_cells(struct wr_drain *drain, struct wr_producer *producer);

#endif
