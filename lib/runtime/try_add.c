#include "runtime/try_add.h"

#include "dispatch/dispatcher.h"
#include "os/clock.h"
#include "producer/gate.h"
#include "producer/producer.h"
#include "producer/ring.h"
#include "producer/instrument.h"
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

enum verdict { ADDED, BUSY, CLOSED };

/* Between begin and end. */
static enum verdict add(struct wr_producer *producer, struct weir_metric *metric, weir_number value)
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
        wr_intake_publish(producer, wr_intake_write(producer, metric, value, 0));
        return ADDED;
    default: return BUSY; /* COLD: to be resolved; WAIT, SYNC: to be waited for */
    }
}

static int add_slow(struct weir_metric *metric, weir_number value)
{
    struct wr_producer *producer = wr_producer_mine;
    uint8_t instrument = atomic_load_explicit(&metric->instrument, memory_order_acquire);
    if (metric->stream->refusal)
        return wr_try_add_refuse(wr_intake_refusal_of(metric->stream->refusal));
    if (!wr_instrument_accepts(instrument, value))
        return wr_try_add_refuse(WEIR_REFUSED_ARGUMENT);
    if (wr_producer_is_gone())
        return wr_try_add_refuse(WEIR_REFUSED_CLOSED);
    if (!is_usable(producer))
        return wr_try_add_refuse(WEIR_REFUSED_BUSY);
    wr_intake_begin(producer);
    enum verdict verdict = add(producer, metric, value);
    wr_fast_add_end(producer);
    if (verdict == ADDED && instrument == WEIR_GAUGE)
        wr_instrument_set_level(metric, wr_value_double(value));
    if (verdict == ADDED)
        return 0;
    return wr_try_add_refuse(verdict == CLOSED ? WEIR_REFUSED_CLOSED : WEIR_REFUSED_BUSY);
}

int wr_try_add(struct weir_metric *metric, weir_number value)
{
    struct wr_producer *producer = wr_producer_mine;
    if (WR_LIKELY(!wr_fast_add_is_busy(producer))) {
        if (WR_LIKELY(wr_fast_add_open(producer, metric, value)))
            return 0;
        wr_fast_add_end(producer);
    }
    return add_slow(metric, value);
}
