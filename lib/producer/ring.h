/* ring: a bounded queue of samples from one thread, the writer, to the thread that holds the round lock, the
 * reader.
 *
 * Positions count slots from the ring's beginning and never wrap (64 bits last 580 years at 10^9 a second); the
 * slot of a position is found by masking. An event is written to its slots and then published as a whole by one
 * store of the tail. Each index is on a cache line of its own, and the writer keeps a limit up to which it may
 * write without reading the reader's index. */
#ifndef WR_RING_H
#define WR_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "text/common.h"
#include "os/versioned.h"

/* Flags that samples have in rings only. */
enum {
    WR_RING_TICKS = 1u << 8,    /* time_ns is in ticks of the processor's counter */
    WR_RING_TEXT = 1u << 9,     /* metadata of `note` bytes is in the following slots */
    WR_RING_SYNC = 1u << 10,    /* the call waits; `reserved` of the first sample is its ticket's number */
    WR_RING_NO_WAIT = 1u << 11, /* written by one of weir's own threads, which does not wait at gates */
    WR_RING_WALL = 1u << 12,    /* time_ns was read from the wall clock by the call; 0: no clock was read */
    WR_RING_FLAGS = 0xff00,
};

/* The writer reads the reader's index at least once per quarter of the ring, which is also the largest event.
 */
enum { WR_RING_QUARTERS = 4 };

/* The part of a ring that can be in a file and outlive its process: the slots, and what is needed to read them.
 */
struct wr_ring_block {
    WR_ALIGNED_LINE uint64_t magic; /* of a journal's file; see journal_file.h */
    uint32_t version;
    uint32_t size;                             /* of slots */
    uint32_t number;                           /* of the file; 0: the block is not in a file */
    WR_ALIGNED_LINE _Atomic uint64_t tail;     /* written by the writer: a copy of the ring's */
    WR_ALIGNED_LINE struct wr_versioned taken; /* written by the reader: everything before it is in segments */
    WR_ALIGNED_LINE weir_sample slots[];
};

struct wr_ring {
    /* read by both: not on the line that the writer writes with each call */
    WR_ALIGNED_LINE weir_sample *slots; /* of a block; NULL: not initialised */
    uint32_t size;                      /* a power of two */

    /* the writer's line; others read tail and write parked */
    WR_ALIGNED_LINE _Atomic uint64_t tail;
    uint64_t limit;          /* slots before this position may be written without reading head */
    _Atomic uint32_t parked; /* 1: the dispatcher does not watch this ring; the writer must wake it */

    /* the reader's line; the writer reads it when it reaches its limit */
    WR_ALIGNED_LINE _Atomic uint64_t head;
    _Atomic uint32_t hungry; /* 1: the writer waits for room, or is about to */
    _Atomic uint32_t room;   /* incremented when room was made for a hungry writer, which waits on it */
    uint64_t text_slots;     /* of all slots before head, how many held text */
    int64_t last_ns;         /* the latest time stamp made from ticks */
    int64_t quiet_since_ns;  /* monotonic; 0: the last round took samples */
};

/* Bytes of a block with `size` slots. */
#define WR_RING_BLOCK_BYTES(size) (sizeof(struct wr_ring_block) + (size) * sizeof(weir_sample))

/* The ring starts empty and parked. block: in memory, with `size` slots, zeroed or not. */
void wr_ring_init(struct wr_ring *ring, struct wr_ring_block *block, uint32_t size);

/* [writer, holding the round lock] Moves an empty ring to another block of the same size. */
void wr_ring_move(struct wr_ring *ring, struct wr_ring_block *block);

static inline struct wr_ring_block *wr_ring_block(const struct wr_ring *ring)
{
    return (struct wr_ring_block *)((char *)ring->slots - offsetof(struct wr_ring_block, slots));
}

/* ---- The writer ------------------------------------------------------------------------------ */

/* Position of the next event. */
static inline uint64_t wr_ring_position(const struct wr_ring *ring)
{
    return atomic_load_explicit(&ring->tail, memory_order_relaxed);
}

/* Whether count slots may be written, without reading the reader's line; false: perhaps. */
static inline bool wr_ring_has_room(const struct wr_ring *ring, uint64_t position, uint64_t count)
{
    return position + count <= ring->limit;
}

/* The same, and reads it. count: at most a quarter of the ring. */
bool wr_ring_find_room(struct wr_ring *ring, uint64_t count);

/* How many slots are not taken yet. Reads the reader's index. */
uint64_t wr_ring_fill(const struct wr_ring *ring);

/* Announces that the writer is going to wait for room for count slots. Returns false if there is room. Pairs
 * with wr_ring_give_back. */
bool wr_ring_starve(struct wr_ring *ring, uint64_t count);

static inline weir_sample *wr_ring_slot(const struct wr_ring *ring, uint64_t position)
{
    return &ring->slots[position & (ring->size - 1)];
}

/* Writes a text into the slots behind its sample, slot by slot, since it may wrap around the ring's end. */
void wr_ring_put_text(const struct wr_ring *ring, uint64_t position, const char *text, uint32_t length);

/* Publishes everything before position. */
static inline void wr_ring_publish(struct wr_ring *ring, uint64_t position)
{
    /* The block's tail is stored first: what the reader has seen is never beyond it. It is read only after the
     * process has ended, so only the compiler has to keep both stores, and those to the slots, in this order.
     */
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

/* Everything before this position was taken. Only the reader changes it. */
static inline uint64_t wr_ring_taken(const struct wr_ring *ring)
{
    return atomic_load_explicit(&ring->head, memory_order_relaxed);
}

/* Returns the slots before position to the writer. Returns whether the writer is hungry and has to be woken.
 *
 * The store of head is at least a release: it pairs with the acquire in wr_ring_fill, so that the reader's
 * loads of the slots precede the writer's stores. The store of head and the load of hungry are sequentially
 * consistent, as are the writer's store of hungry and its load of head in wr_ring_starve: either we see that it
 * is hungry, or it sees the room. */
static inline bool wr_ring_give_back(struct wr_ring *ring, uint64_t position)
{
    atomic_store(&ring->head, position);
    return atomic_load(&ring->hungry) && atomic_exchange(&ring->hungry, 0);
}

/* Slots that a metadata text of length bytes needs. */
static inline uint32_t wr_ring_text_slots(uint32_t length)
{
    return (uint32_t)((length + sizeof(weir_sample) - 1) / sizeof(weir_sample));
}

/* Counts the samples, without slots of text, between two positions that are boundaries of events. */
uint64_t wr_ring_count_samples(const struct wr_ring *ring, uint64_t from, uint64_t to);

#endif
