/* fast_add: the inline path of a value into the calling thread's ring.
 *
 * It takes no lock, allocates nothing and makes no system call: it checks the state of the thread's producer,
 * the group's gate and the ring's limit, writes one slot and publishes it. Where one of the checks fails the
 * caller takes the slow path, in runtime/intake.c: the first value of a thread or of a group, a closed gate, a
 * full ring. */
#ifndef WR_FAST_ADD_H
#define WR_FAST_ADD_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/clock.h"
#include "producer/cache.h"
#include "producer/producer.h"
#include "producer/ring.h"
#include "producer/instrument.h"
#include "registry/registry.h"
#include "text/common.h"

/* A sample is written by words: the machine is little endian, and a weir_sample has four. */
typedef uint64_t __attribute__((may_alias)) wr_sample_word;
static_assert(sizeof(weir_sample) == 4 * sizeof(wr_sample_word) && offsetof(weir_sample, kind) == 4 &&
                  offsetof(weir_sample, flags) == 6 && offsetof(weir_sample, time_ns) == 8 &&
                  offsetof(weir_sample, value) == 16 && offsetof(weir_sample, note) == 24,
              "the words of a sample");

/* Begins a call: nested ones are refused from here on. Pairs with wr_producers_close: `busy` is set before
 * `state` is read, and the membarrier on the other side replaces the fence between the two here. */
static inline void wr_fast_add_begin(struct wr_producer *producer)
{
    atomic_store_explicit(&producer->busy, WR_PRODUCER_WRITING, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void wr_fast_add_end(struct wr_producer *producer)
{
    /* release: pairs with the acquire of wr_producers_settle */
    atomic_store_explicit(&producer->busy, WR_PRODUCER_IDLE, memory_order_release);
}

static inline bool wr_fast_add_is_busy(const struct wr_producer *producer)
{
    return atomic_load_explicit(&producer->busy, memory_order_relaxed);
}

/* Publishes everything before position. Returns whether the dispatcher does not watch this ring, and has to be
 * woken. */
static inline bool wr_fast_add_publish_to(struct wr_producer *producer, uint64_t position)
{
    wr_ring_publish(&producer->ring, position);
    /* Pairs with park_quiet in dispatcher.c: it sets `parked` and then reads the tail; we publish the tail and
     * then read `parked`. Its membarrier replaces our fence, so only the compiler has to be kept from
     * reordering the two. */
    atomic_signal_fence(memory_order_seq_cst);
    return atomic_load_explicit(&producer->ring.parked, memory_order_relaxed);
}

/* Publishes everything before position, and wakes the dispatcher if it does not watch this ring. */
static inline void wr_fast_add_publish(struct wr_producer *producer, uint64_t position)
{
    if (WR_UNLIKELY(wr_fast_add_publish_to(producer, position)))
        wr_producer_wake_reader(producer);
}

/* Whether values may be written to `slots` slots. open: the state of the gate that allows it. Between begin and
 * end. */
static inline bool wr_fast_add_is_possible(const struct wr_producer *producer, const _Atomic uint32_t *gate,
                                           enum wr_gate open, uint64_t position, uint64_t slots)
{
    return atomic_load_explicit(&producer->state, memory_order_relaxed) == WR_PRODUCER_READY &&
           atomic_load_explicit(gate, memory_order_relaxed) == open &&
           wr_ring_has_room(&producer->ring, position, slots);
}

/* Writes the sample and publishes it, and ends the call. flags: a constant, WR_RING_TICKS or WR_RING_WALL;
 * time: according to that; 0: none. */
WR_ALWAYS_INLINE void wr_fast_add_write(struct wr_producer *producer, const struct weir_metric *metric,
                                        weir_number value, uint64_t position, uint16_t flags, uint64_t time)
{
    wr_sample_word *words = (wr_sample_word *)wr_ring_slot(&producer->ring, position);
    words[0] = metric->head | (uint64_t)value.kind << 32 | (uint64_t)flags << 48;
    words[1] = time;
    words[2] = (uint64_t)value.is.i64;
    words[3] = 0; /* note, reserved */
    if (WR_UNLIKELY(wr_fast_add_publish_to(producer, position + 1)))
        wr_producer_wake_reader_and_end(producer); /* the last call: nothing has to be kept for later */
    else
        wr_fast_add_end(producer);
}

/* Begins a call that adds one value of a series without an instrument to a group whose values get a time, and
 * adds it. Returns false if it may not: the call has begun, and nothing has happened. */
WR_ALWAYS_INLINE bool wr_fast_add_open(struct wr_producer *producer, struct weir_metric *metric,
                                       weir_number value)
{
    wr_fast_add_begin(producer);
    uint64_t position = wr_ring_position(&producer->ring);
    const _Atomic uint32_t *gate = atomic_load_explicit(&metric->gate, memory_order_relaxed);
    if (WR_UNLIKELY(!wr_fast_add_is_possible(producer, gate, WR_GATE_OPEN, position, 1)))
        return false;
    wr_fast_add_write(producer, metric, value, position, WR_RING_TICKS, wr_clock_ticks());
    return true;
}

/* Whether all handlers of the group only sum, so that values of the metric's instrument are for cells. */
static inline bool wr_fast_add_is_summed(const struct weir_metric *metric)
{
    /* acquire: pairs with the release in set_instrument of registry.c: a call that finds the gate of series
     * with an instrument finds the instrument, too */
    const _Atomic uint32_t *gate = atomic_load_explicit(&metric->gate, memory_order_acquire);
    return atomic_load_explicit(gate, memory_order_relaxed) == WR_GATE_CHECKED_UNTIMED;
}

/* The series of a name if the thread's cache has it, else NULL. */
static inline struct weir_metric *wr_fast_add_find(const struct weir_stream *stream, const char *name)
{
    return wr_cache_find(wr_cache_place(&wr_producer_mine->cache, stream, name), stream, name);
}

#endif
