/* intake: the slow path of a value into the calling thread's ring; see producer/fast_add.h for the fast one.
 *
 * Here is all that may wait, take a lock or allocate: a thread's first value, a group's first value, gates that
 * are closed, a full ring, synchronous delivery, names that the thread's cache does not have, and refusals. */
#ifndef WR_INTAKE_H
#define WR_INTAKE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

#include "text/common.h"
#include "producer/gate.h"
#include "producer/fast_add.h"
#include "producer/producer.h"
#include "registry/registry.h"
#include "registry/reuse.h"
#include "producer/ring.h"

/* Adds one value of a series. Returns as weir_metric_add. */
int wr_intake_add_slow(struct weir_metric *metric, weir_number value);

/* The same in a call that has begun: see wr_fast_add_open. */
int wr_intake_add_checked(struct wr_producer *producer, struct weir_metric *metric, weir_number value);

/* Moves the level of a gauge, and adds it. Returns as weir_metric_change. */
int wr_intake_change(struct weir_metric *metric, double change);

/* A call that looks for a label set, and uses it before it ends: see registry/reuse.h. */
struct wr_reading {
    struct wr_producer *producer; /* NULL: the thread has none of its own */
    struct wr_registry *registry; /* then; NULL: there is none, or an interrupted call ends it */
    int cancel;                   /* then: what is to be restored */
};

/* The same for a thread without a producer of its own. */
struct wr_reading wr_intake_begin_reading_without(void);
void wr_intake_end_reading_without(struct wr_reading reading);

static inline struct wr_reading wr_intake_begin_reading(void)
{
    struct wr_producer *producer = wr_producer_mine;
    if (WR_UNLIKELY(!producer->home || producer->shared))
        return wr_intake_begin_reading_without();
    return (struct wr_reading){wr_producer_begin_reading(producer, producer->fenced) ? producer : NULL, NULL,
                               0};
}

static inline void wr_intake_end_reading(const struct wr_reading *reading)
{
    if (WR_LIKELY(reading->producer != NULL))
        wr_producer_end_reading(reading->producer);
    else if (reading->registry)
        wr_intake_end_reading_without(*reading);
}

/* [reading, if there are labels] Finds or makes the series of a name, with labels in addition to those of the
 * stream. Never returns NULL; the series of a bad name or label refuses values. */
struct weir_metric *wr_intake_find(struct weir_stream *stream, const char *name, uint16_t flags,
                                   const weir_label *labels, size_t count);

/* The same for a series without flags and further labels, and puts it into the thread's cache. */
struct weir_metric *wr_intake_learn(struct weir_stream *stream, const char *name);

/* [reading] The same with labels, by way of the thread's cache. */
struct weir_metric *wr_intake_find_labeled(struct weir_stream *stream, const char *name,
                                           const weir_label *labels, size_t count);

/* Adds an event. Returns as weir_emit. */
int wr_intake_emit(struct weir_stream *stream, const weir_value *values, size_t count);

/* Returns as weir_stream_enabled. */
bool wr_intake_is_enabled(struct weir_stream *stream);

/* Wakes the dispatcher for a producer whose ring was parked: wr_producers.wake_reader. */
void wr_intake_wake_dispatcher(struct wr_producer *producer);

/* ---- The parts of the slow path --------------------------------------------------------------
 *
 *     enter -> prepare -> write slots at the ring's position -> finish
 *
 * A call that has entered ends with finish, or with leave. */

enum { WR_INTAKE_LARGEST = WR_PRODUCER_SLOTS / WR_RING_QUARTERS }; /* slots of an event */

/* A call. The caller sets group, samples and slots. */
struct wr_intake_call {
    struct wr_runtime *runtime;
    struct wr_producer *producer;
    struct wr_group *group;
    uint64_t samples, slots;
    uint16_t flags;   /* WR_RING_*, for the samples */
    bool never_waits; /* where it would have to, prepare returns WR_INTAKE_FULL; it does not wait for the
                         result of synchronous delivery either */
    bool is_block;    /* of several groups: the caller counts the values of those without a route */
    bool unrouted;    /* the group has no route: the values are counted, and the call is done */
    sigset_t signals;
    uint32_t rounds;       /* the dispatcher's, when the call began to wait or last saw one */
    int64_t last_round_ns; /* when that was; monotonic; 0: it has not waited */
    uint32_t waits;        /* how often it has waited since then */
};

/* wr_fast_add_begin and wr_fast_add_publish, also where there is no membarrier. */
void wr_intake_begin(struct wr_producer *producer);
void wr_intake_publish(struct wr_producer *producer, uint64_t position);

/* Writes one value at the ring's position, with the present time. Returns the position behind it. */
uint64_t wr_intake_write(struct wr_producer *producer, const struct weir_metric *metric, weir_number value,
                         uint16_t flags);

/* Returns false if the call is refused, with the error to return in *error. */
bool wr_intake_enter(struct wr_intake_call *call, int *error);
void wr_intake_leave(struct wr_intake_call *call);

/* Returned where a call that never waits finds no room. Nothing is added or counted. Not an enum weir_error. */
enum { WR_INTAKE_FULL = 1 };

/* Everything that has to be true before slots are written; may wait. Returns 0, or the error to return. */
int wr_intake_prepare(struct wr_intake_call *call);

/* The same in parts, for a block: its groups one after another, then the room for call->slots, at most
 * WR_INTAKE_LARGEST. *unrouted: whether the group has no route. */
int wr_intake_pass_gate(struct wr_intake_call *call, struct wr_group *group, bool *unrouted);
int wr_intake_find_room(struct wr_intake_call *call);

/* The present time as it is stored in a sample with call->flags, to which it adds. */
int64_t wr_intake_time(struct wr_intake_call *call);

/* Publishes what was written up to a position; in a synchronous group waits for the handlers. Ends the call.
 * Returns 0, or the error to return. */
int wr_intake_finish(struct wr_intake_call *call, uint64_t position);

/* Counts a refusal and sets the thread's last error. Returns the error to return. */
int wr_intake_refuse(enum weir_refusal why, uint64_t count, const char *message);

/* The refusal that is counted for the error of a stream or name. */
enum weir_refusal wr_intake_refusal_of(int error);

/* The same for a stream or name that refuses values: its error was set when it was looked up. */
int wr_intake_refuse_named(const struct weir_stream *stream, uint64_t count);

/* The same for a value that the series' instrument does not take. */
int wr_intake_refuse_value(const struct weir_metric *metric, weir_number value, uint64_t count);

/* ---- One value ------------------------------------------------------------------------------- */

/* Adds one value of a series. Returns as weir_metric_add. */
WR_ALWAYS_INLINE int wr_intake_add(struct weir_metric *metric, weir_number value)
{
    struct wr_producer *producer = wr_producer_mine;
    if (WR_UNLIKELY(wr_fast_add_is_busy(producer)))
        return wr_intake_add_slow(metric, value);
    return WR_LIKELY(wr_fast_add_open(producer, metric, value))
               ? 0
               : wr_intake_add_checked(producer, metric, value);
}

#endif
