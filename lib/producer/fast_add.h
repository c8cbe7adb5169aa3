/* fast_add: the inline path of a value into the calling thread's ring.
 *
 * It takes no lock, allocates nothing and makes no system call: it checks the state of the thread's producer,
 * the group's gate and the ring's limit, writes one slot and publishes it. Where one of the checks fails the
 * caller takes the slow path, in runtime/intake.c: the first value of a thread or of a group, a closed gate, a
 * full ring. */
#ifndef WR_FAST_ADD_H
#define WR_FAST_ADD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/clock.h"
#include "producer/cache.h"
#include "producer/producer.h"
#include "producer/ring.h"
#include "registry/registry.h"
#include "text/common.h"

/* A value of either kind, as it is stored in a sample. */
struct wr_value {
    uint16_t kind; /* enum weir_kind */
    union {
        double f64;
        int64_t i64;
    } is;
};

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

/* Publishes everything before position, and wakes the dispatcher if it does not watch this ring. */
static inline void wr_fast_add_publish(struct wr_producer *producer, uint64_t position)
{
    wr_ring_publish(&producer->ring, position);
    /* Pairs with park_quiet in dispatcher.c: it sets `parked` and then reads the tail; we publish the tail and
     * then read `parked`. Its membarrier replaces our fence, so only the compiler has to be kept from
     * reordering the two. */
    atomic_signal_fence(memory_order_seq_cst);
    if (WR_UNLIKELY(atomic_load_explicit(&producer->ring.parked, memory_order_relaxed)))
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

/* Adds one value of a series whose gate is in the state `open`, a constant: OPEN, or TYPED if the caller has
 * checked the value; the value gets no time if it is one of the UNTIMED states. Returns false if it has to take
 * the slow path; nothing has happened then. */
WR_ALWAYS_INLINE bool wr_fast_add_by(struct weir_metric *metric, struct wr_value value, enum wr_gate open)
{
    const bool is_timed = !(open & WR_GATE_UNTIMED);
    struct wr_producer *producer = wr_producer_mine;
    if (WR_UNLIKELY(wr_fast_add_is_busy(producer)))
        return false;
    wr_fast_add_begin(producer);
    uint64_t position = wr_ring_position(&producer->ring);
    const _Atomic uint32_t *gate = atomic_load_explicit(&metric->gate, memory_order_relaxed);
    if (WR_UNLIKELY(!wr_fast_add_is_possible(producer, gate, open, position, 1))) {
        wr_fast_add_end(producer);
        return false;
    }
    *wr_ring_slot(&producer->ring, position) = (weir_sample){
        .series = metric->series,
        .kind = value.kind,
        .flags = metric->flags | (is_timed ? WR_RING_TICKS : WR_RING_WALL),
        .time_ns = is_timed ? (int64_t)wr_clock_ticks() : 0,
        .value.i64 = value.is.i64,
    };
    wr_fast_add_publish(producer, position + 1);
    wr_fast_add_end(producer);
    return true;
}

/* Adds one value of a series without an instrument. The gate of others is never OPEN. */
WR_ALWAYS_INLINE bool wr_fast_add(struct weir_metric *metric, struct wr_value value)
{
    return wr_fast_add_by(metric, value, WR_GATE_OPEN);
}

/* The series of a name if the thread's cache has it, else NULL. */
static inline struct weir_metric *wr_fast_add_find(const struct weir_stream *stream, const char *name)
{
    return wr_cache_find(wr_cache_place(&wr_producer_mine->cache, stream, name), stream, name);
}

#endif
