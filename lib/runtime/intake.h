/* intake: the way of a value from the program's call into the thread's ring.
 *
 * The fast way takes no lock, allocates nothing and makes no system call: it looks at the thread's state, at
 * the group's gate, at the ring's limit, writes one slot and publishes it. Everything else is the slow way, in
 * intake.c: a thread's first value, a group's first value, gates that are closed, a full ring, a ring that
 * nobody watches. */
#ifndef WR_INTAKE_H
#define WR_INTAKE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

#include "os/clock.h"
#include "text/common.h"
#include "producer/gate.h"
#include "producer/producer.h"
#include "registry/registry.h"
#include "producer/ring.h"

/* A value of either kind, as it stands in a sample. */
struct wr_intake_value {
    uint16_t kind;
    union {
        double f64;
        int64_t i64;
    } is;
};

/* Adds one value of a series; answers as weir_metric_add. */
int wr_intake_add_slow(struct weir_metric *metric, struct wr_intake_value value);

/* What a name leads to. NULL never; one that refuses where the name is
 * bad. */
struct weir_metric *wr_intake_find(struct weir_stream *stream, const char *name, uint16_t flags);

/* The same for a value, and puts it into the thread's cache. */
struct weir_metric *wr_intake_learn(struct weir_stream *stream, const char *name);

/* Adds an event; answers as weir_emit. */
int wr_intake_emit(struct weir_stream *stream, const weir_value *values, size_t count);

/* Answers as weir_stream_enabled. */
bool wr_intake_is_enabled(struct weir_stream *stream);

/* ---- The slow way, part by part --------------------------------------------------------------
 *
 *     enter -> prepare -> write slots at the ring's position -> finish
 *
 * Whoever has entered and does not finish leaves. */

enum { WR_INTAKE_LARGEST = WR_PRODUCER_SLOTS / WR_RING_QUARTERS }; /* slots of an event */

/* A call: group, samples and slots are the caller's to fill. */
struct wr_intake_call {
    struct wr_runtime *runtime;
    struct wr_producer *producer;
    struct wr_group *group;
    uint64_t samples, slots;
    uint16_t flags; /* of the ring, for the samples */
    bool unrouted;  /* nobody listens: counted, and nothing more to do */
    sigset_t signals;
};

/* false: *error answers the call. */
bool wr_intake_enter(struct wr_intake_call *call, int *error);
void wr_intake_leave(struct wr_intake_call *call);

/* Everything that has to be right before slots are written; may wait. Answers 0, or the error that answers the
 * call. */
int wr_intake_prepare(struct wr_intake_call *call);

/* The present time as it stands in a sample with call->flags. */
int64_t wr_intake_time(struct wr_intake_call *call);

/* Publishes what was written up to a position; in a synchronous group waits for the answer. Ends the call. */
int wr_intake_finish(struct wr_intake_call *call, uint64_t position);

/* Counts a refusal and says why; answers the call. */
int wr_intake_refuse(enum weir_refusal why, uint64_t count, const char *words);

/* The same for a stream or name that refuses: its error was set when it was looked up. */
int wr_intake_refuse_named(const struct weir_stream *stream, uint64_t count);

/* ---- The fast way ---------------------------------------------------------------------------- */

/* The ring was parked: tells the dispatcher. */
void wr_intake_unpark(struct wr_producer *producer);

/* Begins a call: nested ones are refused from here on. Pairs with wr_producers_close: `busy` is set before
 * `state` is read, and the barrier on the other side stands for the fence between both. */
static inline void wr_intake_begin(struct wr_producer *producer)
{
    atomic_store_explicit(&producer->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void wr_intake_end(struct wr_producer *producer)
{
    /* release: pairs with the acquire of wr_producers_settle */
    atomic_store_explicit(&producer->busy, 0, memory_order_release);
}

/* Shows the event to the dispatcher, and wakes it if it does not watch this ring. */
static inline void wr_intake_publish(struct wr_producer *producer, uint64_t position)
{
    wr_ring_publish(&producer->ring, position);
    /* Pairs with park_quiet: it parks and then looks at the tail; we publish and then look whether we are
     * parked. Its membarrier stands for our fence, so the compiler is all that has to be kept from swapping the
     * two. */
    atomic_signal_fence(memory_order_seq_cst);
    if (WR_UNLIKELY(atomic_load_explicit(&producer->ring.parked, memory_order_relaxed)))
        wr_intake_unpark(producer);
}

static inline bool wr_intake_is_busy(const struct wr_producer *producer)
{
    return atomic_load_explicit(&producer->busy, memory_order_relaxed);
}

/* Whether a value may go the fast way; inside begin and end. */
static inline bool wr_intake_may_go(const struct wr_producer *producer, const _Atomic uint32_t *gate,
                                    uint64_t position, uint64_t slots)
{
    return atomic_load_explicit(&producer->state, memory_order_relaxed) == WR_PRODUCER_READY &&
           atomic_load_explicit(gate, memory_order_relaxed) == WR_GATE_OPEN &&
           wr_ring_has_room(&producer->ring, position, slots);
}

WR_ALWAYS_INLINE int wr_intake_add(struct weir_metric *metric, struct wr_intake_value value)
{
    struct wr_producer *producer = wr_producer_mine;
    if (WR_UNLIKELY(wr_intake_is_busy(producer)))
        return wr_intake_add_slow(metric, value);
    wr_intake_begin(producer);
    uint64_t position = wr_ring_position(&producer->ring);
    if (WR_UNLIKELY(!wr_intake_may_go(producer, metric->gate, position, 1))) {
        wr_intake_end(producer);
        return wr_intake_add_slow(metric, value);
    }
    *wr_ring_slot(&producer->ring, position) = (weir_sample){
        .series = metric->series,
        .kind = value.kind,
        .flags = metric->flags | WR_RING_TICKS,
        .time_ns = (int64_t)wr_clock_ticks(),
        .value.i64 = value.is.i64,
    };
    wr_intake_publish(producer, position + 1);
    wr_intake_end(producer);
    return 0;
}

/* The series of a name, if the thread's cache knows it; else NULL. */
static inline struct weir_metric *wr_intake_recall(const struct weir_stream *stream, const char *name)
{
    return wr_cache_find(wr_cache_place(&wr_producer_mine->cache, stream, name), stream, name);
}

/* The series of a name, which the thread's cache knows from now on. */
static inline struct weir_metric *wr_intake_look_up(struct weir_stream *stream, const char *name)
{
    struct weir_metric *metric = WR_LIKELY(name != NULL) ? wr_intake_recall(stream, name) : NULL;
    return WR_LIKELY(metric) ? metric : wr_intake_learn(stream, name);
}

#endif
