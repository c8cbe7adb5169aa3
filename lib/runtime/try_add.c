#include "runtime/try_add.h"

#include "dispatch/dispatcher.h"
#include "os/clock.h"
#include "producer/gate.h"
#include "producer/producer.h"
#include "producer/ring.h"
#include "producer/typed.h"
#include "runtime/intake.h"
#include "runtime/runtime.h"

/* The counters are on a page that a fork wipes, so they are this process's even before it has an engine. */
int wr_try_add_refuse(enum weir_refusal why)
{
    struct wr_runtime *runtime = wr_runtime_find();
    return runtime ? wr_producers_refuse(&runtime->producers, why, 1) : wr_producers_refuse_early(1);
}

/* ---- What the call would have to do otherwise ------------------------------------------------- */

/* No producer, one that a fork has wiped, one that the interrupted call uses, or one that needs a lock. */
static bool is_usable(const struct wr_producer *producer)
{
    return producer->home && !wr_producer_is_cold(producer) && !wr_fast_add_is_busy(producer) &&
           !producer->shared;
}

/* As wr_intake_enter: without membarrier, the store of `busy` and the load of `state` need a fence. */
static void begin(struct wr_producer *producer)
{
    wr_fast_add_begin(producer);
    if (producer->fenced)
        atomic_exchange(&producer->busy, WR_PRODUCER_WRITING);
}

static struct wr_dispatcher *find_dispatcher(struct wr_runtime *runtime)
{
    return &wr_runtime_engine(runtime)->dispatcher;
}

/* Between begin and end. The ring may be about to move to the journal: what it holds then would not survive the
 * process. */
static bool has_room(struct wr_producer *producer, struct wr_runtime *runtime)
{
    struct wr_ring *ring = &producer->ring;
    if (!producer->own && atomic_load_explicit(&producer->renew, memory_order_relaxed))
        return false;
    if (wr_ring_fill(ring) > ring->size / 2)
        wr_dispatcher_hurry(find_dispatcher(runtime));
    return wr_ring_find_room(ring, 1);
}

/* ---- Adding ---------------------------------------------------------------------------------- */

static void publish(struct wr_producer *producer, uint64_t position)
{
    wr_fast_add_publish(producer, position);
    if (!producer->fenced)
        return;
    /* as in intake: the store of tail and the load of parked as sequentially consistent operations */
    atomic_exchange(&producer->ring.tail, position);
    if (atomic_load(&producer->ring.parked))
        wr_intake_wake_dispatcher(producer);
}

static void write_sample(struct wr_producer *producer, const struct weir_metric *metric, struct wr_value value)
{
    struct wr_ring *ring = &producer->ring;
    uint64_t position = wr_ring_position(ring);
    bool ticks = atomic_load_explicit(&producer->ticks, memory_order_relaxed);
    *wr_ring_slot(ring, position) = (weir_sample){
        .series = metric->series,
        .kind = value.kind,
        .flags = (uint16_t)(metric->flags | (ticks ? WR_RING_TICKS : WR_RING_WALL)),
        .time_ns = ticks ? (int64_t)wr_clock_ticks() : wr_clock_wall_ns(),
        .value.i64 = value.is.i64,
    };
    publish(producer, position + 1);
}

enum verdict { ADDED, BUSY, CLOSED };

/* Between begin and end. */
static enum verdict add(struct wr_producer *producer, struct weir_metric *metric, struct wr_value value)
{
    struct wr_group *group = metric->stream->group;
    struct wr_runtime *runtime = wr_runtime_find();
    enum wr_gate gate = wr_gate_read(group); /* before the state: a shutdown closes the producers and then sets
                                                the gates to OFF */
    uint32_t state = atomic_load(&producer->state);
    if (state == WR_PRODUCER_CLOSED)
        return CLOSED;
    if (state == WR_PRODUCER_COLD || !runtime)
        return BUSY;
    switch (gate) {
    case WR_GATE_OFF: wr_unrouted_count(&producer->unrouted, group, 1); return ADDED;
    case WR_GATE_OPEN:
    case WR_GATE_OPEN_UNTIMED:
        if (!has_room(producer, runtime))
            return BUSY;
        write_sample(producer, metric, value);
        return ADDED;
    default: return BUSY; /* COLD: to be resolved; WAIT, SYNC: to be waited for */
    }
}

static int add_slow(struct weir_metric *metric, struct wr_value value)
{
    struct wr_producer *producer = wr_producer_mine;
    uint8_t instrument = atomic_load_explicit(&metric->instrument, memory_order_acquire);
    if (metric->stream->refusal)
        return wr_try_add_refuse(wr_intake_refusal_of(metric->stream->refusal));
    if (!wr_typed_accepts(instrument, value))
        return wr_try_add_refuse(WEIR_REFUSED_ARGUMENT);
    if (wr_producer_is_gone())
        return wr_try_add_refuse(WEIR_REFUSED_CLOSED);
    if (!is_usable(producer))
        return wr_try_add_refuse(WEIR_REFUSED_BUSY);
    begin(producer);
    enum verdict verdict = add(producer, metric, value);
    wr_fast_add_end(producer);
    if (verdict == ADDED && instrument == WEIR_GAUGE)
        wr_typed_set_level(metric, wr_typed_double(value));
    if (verdict == ADDED)
        return 0;
    return wr_try_add_refuse(verdict == CLOSED ? WEIR_REFUSED_CLOSED : WEIR_REFUSED_BUSY);
}

int wr_try_add(struct weir_metric *metric, struct wr_value value)
{
    struct wr_producer *producer = wr_producer_mine;
    if (WR_LIKELY(!wr_fast_add_is_busy(producer))) {
        if (WR_LIKELY(wr_fast_add_open(producer, metric, value)))
            return 0;
        wr_fast_add_end(producer);
    }
    return add_slow(metric, value);
}
