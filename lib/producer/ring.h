/* ring: a bounded queue of samples from one thread (the writer) to whoever holds the dispatcher's round (the
 * reader).
 *
 * Positions count slots from the ring's beginning and never wrap (at 10^9 a second 64 bits last 580 years); a
 * slot is found by masking. An event is written to its slots and then published as a whole by one store of the
 * tail. Each index is on a line of its own, and the writer keeps a limit up to which it may go without looking
 * at the reader's index. */
#ifndef WR_RING_H
#define WR_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "text/common.h"
#include "os/versioned.h"

/* Flags of samples that only live in rings. */
enum {
    WR_RING_TICKS = 1u << 8,    /* time_ns holds ticks of the processor's counter */
    WR_RING_TEXT = 1u << 9,     /* metadata of `note` bytes is in the slots behind */
    WR_RING_SYNC = 1u << 10,    /* the writer waits; the first sample's `reserved` is its ticket's number */
    WR_RING_NO_WAIT = 1u << 11, /* the writer is one of weir's own threads and did not wait at a gate */
    WR_RING_WALL = 1u << 12,    /* time_ns was read from the wall clock by the call */
    WR_RING_FLAGS = 0xff00,
};

/* The writer looks at the reader's index at least each quarter of the ring, which is also the largest event. */
enum { WR_RING_QUARTERS = 4 };

/* What of a ring may be kept over the death of its process: the slots, and in front of them all that is needed
 * to make sense of them. */
struct wr_ring_block {
    WR_ALIGNED_LINE uint64_t magic; /* of a journal's file; see journal_file.h */
    uint32_t version;
    uint32_t size;                             /* of slots */
    WR_ALIGNED_LINE _Atomic uint64_t tail;     /* the writer's: a copy of the ring's */
    WR_ALIGNED_LINE struct wr_versioned taken; /* the reader's: everything before it is safe elsewhere */
    WR_ALIGNED_LINE weir_sample slots[];
};

struct wr_ring {
    /* of both, and so not on the line that the writer writes in each call */
    WR_ALIGNED_LINE weir_sample *slots; /* of a block; NULL: not set up */
    uint32_t size;                      /* a power of two */

    /* the writer's line; others read tail and may write parked */
    WR_ALIGNED_LINE _Atomic uint64_t tail;
    uint64_t limit;          /* slots before this position may be written without looking further */
    _Atomic uint32_t parked; /* 1: nobody watches this ring; who publishes must say so */

    /* the reader's line; the writer reads it when it comes to its limit */
    WR_ALIGNED_LINE _Atomic uint64_t head;
    _Atomic uint32_t hungry; /* 1: the writer sleeps, or is about to, until there is room */
    _Atomic uint32_t room;   /* changes when room was made for a hungry writer: it sleeps on this */
    uint64_t text_slots;     /* of all slots before head: so many held text, not samples */
    int64_t last_ns;         /* the latest time stamp made from ticks */
    int64_t quiet_since_ns;  /* monotonic; 0: there was something in the last round */
};

/* Bytes of a block with so many slots. */
#define WR_RING_BLOCK_BYTES(size) (sizeof(struct wr_ring_block) + (size) * sizeof(weir_sample))

/* The ring starts empty and parked. block: with `size` slots, zeroed or not. */
void wr_ring_init(struct wr_ring *ring, struct wr_ring_block *block, uint32_t size);

/* [writer, with the reader kept out] Has an empty ring go on in another block of the same size. */
void wr_ring_move(struct wr_ring *ring, struct wr_ring_block *block);

static inline struct wr_ring_block *wr_ring_block(const struct wr_ring *ring)
{
    return (struct wr_ring_block *)((char *)ring->slots - offsetof(struct wr_ring_block, slots));
}

/* ---- The writer ------------------------------------------------------------------------------ */

/* Where the next event goes. */
static inline uint64_t wr_ring_position(const struct wr_ring *ring)
{
    return atomic_load_explicit(&ring->tail, memory_order_relaxed);
}

/* Whether count slots may be written, as far as can be told without looking at the reader's line. */
static inline bool wr_ring_has_room(const struct wr_ring *ring, uint64_t position, uint64_t count)
{
    return position + count <= ring->limit;
}

/* The same, with a look. At most a quarter of the ring may be asked for. */
bool wr_ring_find_room(struct wr_ring *ring, uint64_t count);

/* How many slots are waiting for the reader, as of a look at its index just now. */
uint64_t wr_ring_fill(const struct wr_ring *ring);

/* Says that the writer will sleep until there is room for count slots; false: there is room already. Pairs with
 * wr_ring_give_back. */
bool wr_ring_starve(struct wr_ring *ring, uint64_t count);

static inline weir_sample *wr_ring_slot(const struct wr_ring *ring, uint64_t position)
{
    return &ring->slots[position & (ring->size - 1)];
}

/* Shows the reader everything before position. */
static inline void wr_ring_publish(struct wr_ring *ring, uint64_t position)
{
    /* the block's first: what the reader has seen is never beyond it. Nobody reads it while the process lives,
     * so it is enough that the compiler leaves both stores, and those to the slots, in this order. */
    atomic_signal_fence(memory_order_release);
    atomic_store_explicit(&wr_ring_block(ring)->tail, position, memory_order_relaxed);
    /* release: pairs with the acquire in wr_ring_published; the linearisation point of adding */
    atomic_store_explicit(&ring->tail, position, memory_order_release);
}

/* ---- The reader ------------------------------------------------------------------------------ */

/* Everything before this position is published. */
static inline uint64_t wr_ring_published(const struct wr_ring *ring)
{
    return atomic_load_explicit(&ring->tail, memory_order_acquire);
}

/* Everything before this position was taken; only the reader changes it. */
static inline uint64_t wr_ring_taken(const struct wr_ring *ring)
{
    return atomic_load_explicit(&ring->head, memory_order_relaxed);
}

/* Gives the slots before position back to the writer; answers whether it is hungry and has to be woken.
 *
 * Release, at least: pairs with the acquire in wr_ring_fill, so that the reader's loads come before the
 * writer's stores. And the store of head and the load of hungry are sequentially consistent, as are the
 * writer's store of hungry and its load of head in wr_ring_starve: either we see that it is hungry, or it sees
 * the room. */
static inline bool wr_ring_give_back(struct wr_ring *ring, uint64_t position)
{
    atomic_store(&ring->head, position);
    return atomic_load(&ring->hungry) && atomic_exchange(&ring->hungry, 0);
}

/* Slots that a metadata text of length bytes takes. */
static inline uint32_t wr_ring_text_slots(uint32_t length)
{
    return (uint32_t)((length + sizeof(weir_sample) - 1) / sizeof(weir_sample));
}

/* Counts the samples, without slots of text, between two positions that are borders of events. */
uint64_t wr_ring_count_samples(const struct wr_ring *ring, uint64_t from, uint64_t to);

#endif
