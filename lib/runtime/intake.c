#include "runtime/intake.h"

#include <stdio.h>
#include <string.h>

#include "runtime/configure.h"
#include "dispatch/dispatcher.h"
#include "engine/engine.h"
#include "handler/worker.h"
#include "lane/lane_now.h"
#include "text/error.h"
#include "producer/instrument.h"
#include "registry/series.h"
#include "registry/stream.h"
#include "os/cancel.h"
#include "os/signals.h"

/* ---- Refusals -------------------------------------------------------------------------------- */

int wr_intake_refuse(enum weir_refusal why, uint64_t count, const char *message)
{
    struct wr_runtime *runtime = wr_runtime_get();
    if (!runtime)
        return wr_producers_refuse_early(count);
    int code = wr_producers_refuse(&runtime->producers, why, count);
    if (why != WEIR_REFUSED_BUSY) /* the interrupted call may be writing the error */
        wr_error_set(wr_producers_error(&runtime->producers), code, "%s", message);
    return code;
}

enum weir_refusal wr_intake_refusal_of(int error)
{
    switch (error) {
    case WEIR_ERR_MEMORY: return WEIR_REFUSED_MEMORY;
    case WEIR_ERR_LIMIT: return WEIR_REFUSED_LIMIT;
    case WEIR_ERR_ARGUMENT: return WEIR_REFUSED_ARGUMENT;
    default: return WEIR_REFUSED_NAME;
    }
}

int wr_intake_refuse_named(const struct weir_stream *stream, uint64_t count)
{
    struct wr_runtime *runtime = wr_runtime_get();
    return runtime ? wr_producers_refuse(&runtime->producers, wr_intake_refusal_of(stream->refusal), count)
                   : wr_producers_refuse_early(count);
}

int wr_intake_refuse_value(const struct weir_metric *metric, weir_number value, uint64_t count)
{
    char message[128 + UINT8_MAX];
    const weir_series *view = atomic_load_explicit(&metric->view, memory_order_acquire);
    snprintf(message, sizeof message, "name \"%s\": %g is not a value of a %s", metric->name,
             wr_value_double(value),
             view->instrument == WEIR_COUNTER ? "counter, whose increments are at least 0 and at most 4e304"
                                              : "histogram, whose values are finite");
    return wr_intake_refuse(WEIR_REFUSED_ARGUMENT, count, message);
}

static int refuse_nested(uint64_t count)
{
    return wr_intake_refuse(WEIR_REFUSED_BUSY, count, "called by a signal handler that interrupted weir");
}

static int refuse_closed(uint64_t count)
{
    return wr_intake_refuse(WEIR_REFUSED_CLOSED, count, "weir has been shut down, or this thread is ending");
}

/* ---- Getting a producer ---------------------------------------------------------------------- */

/* The calling thread's producer, initialised. Returns NULL if the call is refused, with its error in *error. */
static struct wr_producer *attach(uint64_t count, int *error)
{
    if (wr_producer_is_gone()) {
        *error = refuse_closed(count);
        return NULL;
    }
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_producer *producer = runtime ? wr_producers_attach(&runtime->producers) : NULL;
    if (!producer)
        *error = wr_intake_refuse(WEIR_REFUSED_MEMORY, count, "no memory for this thread's ring");
    return producer;
}

/* ---- Entering -------------------------------------------------------------------------------- */

/* Several threads use the ring: one at a time, with signals blocked. */
static void enter_shared(struct wr_intake_call *call)
{
    wr_signals_block(&call->signals);
    wr_lock_enter(&call->producer->sharing);
}

static void leave_shared(struct wr_intake_call *call)
{
    wr_lock_leave(&call->producer->sharing);
    wr_signals_restore(&call->signals);
}

/* Without membarrier the store of `busy` and the load of `state` need a fence. */
void wr_intake_begin(struct wr_producer *producer)
{
    wr_fast_add_begin(producer);
    if (producer->fenced)
        atomic_exchange(&producer->busy, WR_PRODUCER_WRITING);
}

/* From here to end_waiting, a shutdown does not wait for the call: it has published its values, or publishes
 * none before it has read `state` again. release: pairs with the acquire of wr_producers_settle. */
static void begin_waiting(struct wr_producer *producer)
{
    atomic_store_explicit(&producer->busy, WR_PRODUCER_WAITING, memory_order_release);
}

/* The caller then checks the state: see check_state. */
static void end_waiting(struct wr_producer *producer)
{
    wr_intake_begin(producer);
}

bool wr_intake_enter(struct wr_intake_call *call, int *error)
{
    struct wr_producer *producer = wr_producer_mine;
    if (producer->home && wr_fast_add_is_busy(producer) && !producer->shared) {
        *error = refuse_nested(call->samples);
        return false;
    }
    call->runtime = wr_runtime_get(); /* a child begins here anew, which makes its producers cold */
    if ((!producer->home || wr_producer_is_cold(producer)) && !(producer = attach(call->samples, error)))
        return false;
    call->producer = producer;
    if (!call->runtime) {
        *error = WEIR_ERR_MEMORY;
        return false;
    }
    if (producer->shared)
        enter_shared(call);
    wr_intake_begin(producer);
    return true;
}

void wr_intake_leave(struct wr_intake_call *call)
{
    if (!call->producer->shared) {
        wr_fast_add_end(call->producer);
        return;
    }
    /* release: as in wr_fast_add_end */
    atomic_store_explicit(&call->producer->busy, WR_PRODUCER_SHARED, memory_order_release);
    leave_shared(call);
}

/* ---- The engine ------------------------------------------------------------------------------- */

/* What leave_engine restores. */
struct mask {
    sigset_t signals;
    int cancel;
};

static void leave_engine(const struct mask *mask)
{
    wr_signals_restore(&mask->signals);
    wr_cancel_restore(&mask->cancel);
}

/* Blocks signals, and cancellation: a thread that ended inside the engine would leave its locks taken. */
static void enter_engine(struct mask *mask)
{
    mask->cancel = wr_cancel_disable();
    wr_signals_block(&mask->signals);
}

enum { WAIT_MS = 100, NO_ROUND_WAITS = 8 };

static struct wr_dispatcher *dispatcher_of(const struct wr_intake_call *call)
{
    return &wr_runtime_engine(call->runtime)->dispatcher;
}

/* ---- The gate -------------------------------------------------------------------------------- */

static bool is_closed(const struct wr_intake_call *call)
{
    return atomic_load(&call->producer->state) == WR_PRODUCER_CLOSED;
}

/* Whether the call has to end, as weir was shut down. Returns 0, or the error to return. */
static int check_state(const struct wr_intake_call *call)
{
    return is_closed(call) ? refuse_closed(call->samples) : 0;
}

/* The group's first value in this process. May load plugins, or wait for the thread that does. The
 * caller then checks the state. */
static enum wr_warmth warm(struct wr_intake_call *call)
{
    struct mask mask;
    enter_engine(&mask);
    begin_waiting(call->producer);
    enum wr_warmth warmth = wr_configure_warm(call->runtime, call->group, true);
    end_waiting(call->producer);
    leave_engine(&mask);
    return warmth;
}

/* A round takes microseconds, so one is missing only if the dispatcher's thread is stuck outside: it waits for
 * a lock of malloc where it starts a thread, or for the program's log function. Both may wait for this thread,
 * if this is a signal handler. The time alone does not count: the whole process may have stood still. Returns
 * 0, or the error to return if there can be no round at all. */
static int ensure_rounds(struct wr_intake_call *call)
{
    struct wr_engine *engine = wr_runtime_engine(call->runtime);
    struct wr_dispatcher *dispatcher = &engine->dispatcher;
    uint32_t rounds = atomic_load_explicit(&dispatcher->rounds, memory_order_relaxed);
    int64_t now_ns = wr_clock_monotonic_ns();
    struct mask mask;
    if (!call->last_round_ns || rounds != call->rounds) {
        call->rounds = rounds;
        call->last_round_ns = now_ns;
        call->waits = 0;
        return 0;
    }
    if (++call->waits >= NO_ROUND_WAITS && now_ns - call->last_round_ns >= engine->limits.no_round_ns)
        return wr_intake_refuse(WEIR_REFUSED_BUSY, call->samples, "the dispatcher is stuck");
    enter_engine(&mask);
    wr_dispatcher_help(dispatcher, now_ns + WAIT_MS * WR_NS_PER_MS);
    leave_engine(&mask);
    return 0;
}

/* Waits for the group's gate. Returns 0, or the error to return. */
static int pass_gate(struct wr_intake_call *call)
{
    enum wr_warmth warmth;
    int error;
    for (;;) {
        if ((error = check_state(call)))
            return error;
        if (call->never_waits && wr_gate_is_held(call->group))
            return WR_INTAKE_FULL;
        switch (wr_gate_read(call->group)) {
        case WR_GATE_COLD:
            warmth = warm(call);
            if ((error = check_state(call)))
                return error;
            if (warmth == WR_WARMTH_NOT_YET)
                return 0;
            if (warmth == WR_WARMTH_NO_ROUTES)
                return wr_intake_refuse(WEIR_REFUSED_MEMORY, call->samples, "no memory for the routes");
            break;
        case WR_GATE_OFF:
            if ((error = check_state(call))) /* a shutdown may have set the gate: see open_all_gates */
                return error;
            if (!call->is_block)
                wr_unrouted_count(&call->producer->unrouted, call->group, call->samples);
            call->unrouted = true;
            return 0;
        case WR_GATE_SYNC:
            if (!call->producer->own && !call->never_waits)
                call->flags |= WR_RING_SYNC;
            return 0;
        case WR_GATE_WAIT:
            if (call->producer->own) {
                call->flags |= WR_RING_NO_WAIT;
                return 0;
            }
            if (call->never_waits)
                return WR_INTAKE_FULL;
            begin_waiting(call->producer);
            wr_gate_wait(call->group, WAIT_MS * WR_NS_PER_MS);
            error = ensure_rounds(call);
            end_waiting(call->producer);
            if (error)
                return error;
            break;
        default: return 0;
        }
    }
}

/* ---- The ring -------------------------------------------------------------------------------- */

/* Runs a round if the dispatcher's thread cannot be waited for: it could not be started, or it may be waiting
 * for this thread, which is one of weir's own. */
static void run_round_if_needed(const struct wr_intake_call *call)
{
    struct wr_dispatcher *dispatcher = dispatcher_of(call);
    struct mask mask;
    int64_t next_ns;
    if (!call->producer->own && atomic_load(&dispatcher->running))
        return;
    enter_engine(&mask);
    wr_dispatcher_visit(dispatcher);
    if (call->producer->own || !wr_dispatcher_start(dispatcher))
        wr_dispatcher_round(dispatcher, &next_ns);
    wr_dispatcher_leave(dispatcher);
    leave_engine(&mask);
}

/* Waits until the ring has room. Returns 0, or the error to return. */
static int find_room(struct wr_intake_call *call)
{
    struct wr_ring *ring = &call->producer->ring;
    int error;
    if (wr_ring_fill(ring) > ring->size / 2)
        wr_dispatcher_hurry(dispatcher_of(call));
    if (call->never_waits) /* before the values are published, which the reader acquires */
        atomic_store_explicit(&call->producer->is_source, true, memory_order_relaxed);
    while (!wr_ring_find_room(ring, call->slots)) {
        if ((error = check_state(call)))
            return error;
        if (call->never_waits)
            return WR_INTAKE_FULL;
        if (wr_configure_is_here(call->runtime))
            return wr_intake_refuse(WEIR_REFUSED_BUSY, call->samples,
                                    "this thread is configuring weir, and its ring is full");
        begin_waiting(call->producer);
        run_round_if_needed(call);
        if (!call->producer->own)
            wr_dispatcher_wait_room(dispatcher_of(call), call->producer, call->slots, WAIT_MS * WR_NS_PER_MS);
        error = call->producer->own ? 0 : ensure_rounds(call);
        end_waiting(call->producer);
        if (error || (error = check_state(call)))
            return error;
    }
    return 0;
}

/* Into the journal. */
static void move_ring(const struct wr_intake_call *call)
{
    struct mask mask;
    enter_engine(&mask);
    wr_dispatcher_renew(dispatcher_of(call), call->producer);
    leave_engine(&mask);
}

int wr_intake_pass_gate(struct wr_intake_call *call, struct wr_group *group, bool *unrouted)
{
    call->group = group;
    call->unrouted = false;
    int error = pass_gate(call);
    *unrouted = call->unrouted;
    return error;
}

int wr_intake_find_room(struct wr_intake_call *call)
{
    if (WR_UNLIKELY(atomic_load_explicit(&call->producer->renew, memory_order_relaxed)))
        move_ring(call);
    return find_room(call);
}

int wr_intake_prepare(struct wr_intake_call *call)
{
    if (call->slots > WR_INTAKE_LARGEST)
        return wr_intake_refuse(WEIR_REFUSED_TOO_LARGE, call->samples,
                                "the event is larger than a quarter of the thread's ring (32 KiB)");
    int error = pass_gate(call);
    return error || call->unrouted ? error : wr_intake_find_room(call);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static int64_t read_time(const struct wr_producer *producer, uint16_t *flags)
{
    bool has_ticks = atomic_load_explicit(&producer->ticks, memory_order_relaxed);
    *flags |= has_ticks ? WR_RING_TICKS : WR_RING_WALL;
    return has_ticks ? (int64_t)wr_clock_ticks() : wr_clock_wall_ns();
}

int64_t wr_intake_time(struct wr_intake_call *call)
{
    return read_time(call->producer, &call->flags);
}

uint64_t wr_intake_write(struct wr_producer *producer, const struct weir_metric *metric, weir_number value,
                         uint16_t flags)
{
    uint64_t position = wr_ring_position(&producer->ring);
    int64_t time_ns = read_time(producer, &flags);
    *wr_ring_slot(&producer->ring, position) = (weir_sample){
        .series = metric->series,
        .kind = (uint16_t)value.kind,
        .flags = (uint16_t)(metric->flags | flags),
        .time_ns = time_ns,
        .value.i64 = value.is.i64,
    };
    return position + 1;
}

void wr_intake_publish(struct wr_producer *producer, uint64_t position)
{
    wr_fast_add_publish(producer, position);
    if (!producer->fenced)
        return;
    /* without membarrier a fence is needed between the store of tail and the load of parked: both are repeated
     * as sequentially consistent operations */
    atomic_exchange(&producer->ring.tail, position);
    if (atomic_load(&producer->ring.parked))
        wr_intake_wake_dispatcher(producer);
}

void wr_intake_wake_dispatcher(struct wr_producer *producer)
{
    struct wr_runtime *runtime = wr_runtime_get();
    if (runtime)
        wr_dispatcher_wake(&wr_runtime_engine(runtime)->dispatcher, producer);
}

/* ---- Synchronous calls ----------------------------------------------------------------------- */

static struct wr_lane_progress read_progress(const struct wr_intake_call *call)
{
    struct mask mask;
    enter_engine(&mask);
    struct wr_lane_progress progress = wr_engine_sync_progress(wr_runtime_engine(call->runtime), call->group);
    leave_engine(&mask);
    return progress;
}

/* Waits while the handlers make progress; a call fails after block_timeout without any. */
static int wait_for_handlers(const struct wr_intake_call *call, struct wr_ticket ticket)
{
    int result;
    if (wr_ticket_wait(ticket, 0, &result))
        return result;
    struct wr_lane_progress before = read_progress(call), now;
    while (!wr_ticket_wait(ticket, wr_clock_monotonic_ns() + before.timeout_ns, &result)) {
        now = read_progress(call);
        if (is_closed(call) || now.settled == before.settled)
            return WEIR_ERR_TIMEOUT;
        before = now;
    }
    return result;
}

static int set_error(const struct wr_intake_call *call, int result)
{
    if (!result)
        return 0;
    WR_CANCEL_DISABLED;
    struct wr_error *mine = wr_producers_error(&call->runtime->producers);
    if (mine && !wr_engine_explain(wr_runtime_engine(call->runtime), call->group, result, mine))
        wr_error_set(mine, result, "%s",
                     result == WEIR_ERR_TIMEOUT   ? "the handler has not settled the value in time"
                     : result == WEIR_ERR_SPOOLED ? "the value is on disk, and not delivered yet"
                                                  : "the handler dropped the value");
    return result;
}

/* Takes the event to its handlers on this thread, without the dispatcher's; and delivers it, if its handler can
 * do that now. Messages are left to other threads. Returns false if nothing was done. */
static bool deliver_now(const struct wr_intake_call *call, uint64_t from, uint64_t position)
{
    struct wr_lane_now now = {0};
    struct mask mask;
    enter_engine(&mask);
    bool taken =
        !is_closed(call) && wr_dispatcher_take_now(dispatcher_of(call), call->producer, from, position, &now);
    if (now.lane)
        wr_worker_emit_now(&now, &mask.signals);
    leave_engine(&mask);
    return taken;
}

/* Publishes a synchronous call's event. From here on a shutdown does not wait for the call. */
static void publish_sync(struct wr_intake_call *call, uint64_t position)
{
    uint64_t from = wr_ring_position(&call->producer->ring);
    wr_ring_publish(&call->producer->ring, position); /* the dispatcher is not woken yet */
    begin_waiting(call->producer);
    if (deliver_now(call, from, position))
        return;
    wr_intake_publish(call->producer, position);
    wr_dispatcher_hurry(dispatcher_of(call));
}

int wr_intake_finish(struct wr_intake_call *call, uint64_t position)
{
    const struct wr_ring *ring = &call->producer->ring;
    bool sync = call->flags & WR_RING_SYNC;
    struct wr_ticket ticket = {0};
    if (sync) {
        ticket = wr_ticket_take(&call->producer->ticket);
        wr_ring_slot(ring, wr_ring_position(ring))->reserved = ticket.number;
    }
    if (sync)
        publish_sync(call, position);
    else
        wr_intake_publish(call->producer, position);
    int result = sync ? wait_for_handlers(call, ticket) : 0;
    wr_intake_leave(call);
    return set_error(call, result);
}

/* ---- One value ------------------------------------------------------------------------------- */

/* Records the level of a gauge. Only when the value can no longer be refused. */
static void set_level(const struct weir_metric *metric, weir_number value)
{
    if (atomic_load_explicit(&metric->instrument, memory_order_acquire) == WEIR_GAUGE)
        wr_instrument_set_level(metric, wr_value_double(value));
}

/* sets_level: unless it is there already. *refused: whether the value is not added; an error may also be that
 * of a synchronous handler. */
static int add_slow(struct weir_metric *metric, weir_number value, bool sets_level, bool *refused)
{
    struct wr_intake_call call = {.group = metric->stream->group, .samples = 1, .slots = 1};
    int error;
    *refused = true;
    if (!wr_intake_enter(&call, &error))
        return error;
    error = wr_intake_prepare(&call);
    *refused = error;
    if (!error && sets_level)
        set_level(metric, value);
    if (error || call.unrouted) {
        wr_intake_leave(&call);
        return error;
    }
    return wr_intake_finish(&call, wr_intake_write(call.producer, metric, value, call.flags));
}

int wr_intake_add_slow(struct weir_metric *metric, weir_number value)
{
    uint8_t instrument = atomic_load_explicit(&metric->instrument, memory_order_acquire);
    if (instrument == WR_INSTRUMENT_REFUSES)
        return wr_intake_refuse_named(metric->stream, 1);
    if (!wr_instrument_accepts(instrument, value))
        return wr_intake_refuse_value(metric, value, 1);
    bool refused;
    return add_slow(metric, value, true, &refused);
}

/* For a thread without ticks. A function of its own, since only its call makes the others save registers. */
WR_NEVER_INLINE static bool add_clocked(struct wr_producer *producer, const struct weir_metric *metric,
                                        weir_number value, uint64_t position)
{
    wr_fast_add_write(producer, metric, value, position, WR_RING_WALL, (uint64_t)wr_clock_wall_ns());
    return true;
}

/* Adds one value in a call that has begun, whatever the gate lets through: values of a series with an
 * instrument are checked, those of groups that need no time get none, and without ticks the wall clock is read.
 * sets_level, a constant: of a gauge, unless it is there already. Ends the call. Returns false if it has to
 * take the slow path; nothing has happened then. */
WR_ALWAYS_INLINE bool add_checked(struct wr_producer *producer, struct weir_metric *metric, weir_number value,
                                  bool sets_level)
{
    /* acquire: pairs with the release in set_instrument of registry.c: a call that finds the gate of series
     * with an instrument finds the instrument, too */
    const _Atomic uint32_t *of = atomic_load_explicit(&metric->gate, memory_order_acquire);
    uint32_t gate = atomic_load_explicit(of, memory_order_relaxed);
    /* acquire: pairs with the release there: the level of a gauge is in the view */
    uint8_t instrument = atomic_load_explicit(&metric->instrument, memory_order_acquire);
    uint64_t position = wr_ring_position(&producer->ring);
    uint32_t state = atomic_load_explicit(&producer->state, memory_order_relaxed);
    uint32_t timeless = gate | WR_GATE_UNTIMED;
    bool is_let_through = (state == WR_PRODUCER_READY || state == WR_PRODUCER_CLOCKED) &&
                          (timeless == WR_GATE_OPEN_UNTIMED || timeless == WR_GATE_CHECKED_UNTIMED ||
                           timeless == WR_GATE_CHECKED_RANKED) &&
                          wr_ring_has_room(&producer->ring, position, 1);
    if (WR_UNLIKELY(!is_let_through || !wr_instrument_accepts(instrument, value))) {
        wr_fast_add_end(producer);
        return false;
    }
    if (sets_level && instrument == WEIR_GAUGE) /* the value can no longer be refused */
        wr_instrument_set_level(metric, wr_value_double(value));
    if (WR_UNLIKELY(gate != timeless && state == WR_PRODUCER_CLOCKED))
        return add_clocked(producer, metric, value, position);
    if (WR_LIKELY(gate == timeless))
        wr_fast_add_write(producer, metric, value, position, WR_RING_WALL, 0);
    else
        wr_fast_add_write(producer, metric, value, position, WR_RING_TICKS, wr_clock_ticks());
    return true;
}

/* ---- Values that are summed here ---- */

/* Each returns false if the value is for add_checked, which the caller calls then: it is not added. */

static inline bool may_sum(const struct wr_producer *producer)
{
    uint32_t state = atomic_load_explicit(&producer->state, memory_order_relaxed);
    return state == WR_PRODUCER_READY || state == WR_PRODUCER_CLOCKED;
}

/* Adds one value of a counter or gauge to the thread's cell, if there is one, and ends the call. A level is in
 * one word of the process, so that only the number of its values is summed; with a journal, which has no such
 * word, it goes by the ring. sets_level: as add_checked has it. */
WR_ALWAYS_INLINE bool add_to_cell(struct wr_producer *producer, const struct weir_metric *metric,
                                  uint8_t instrument, weir_number value, bool sets_level)
{
    double number = wr_value_double(value);
    bool is_gauge = instrument == WEIR_GAUGE;
    bool is_summed =
        is_gauge ? isfinite(number) && !producer->cells.is_kept : instrument == WEIR_COUNTER && number >= 0;
    if (WR_UNLIKELY(!is_summed || !may_sum(producer)))
        return false;
    if (sets_level && is_gauge) /* before it counts: who finds the number finds a level */
        wr_instrument_set_level(metric, number);
    if (WR_UNLIKELY(!wr_cells_add(&producer->cells, metric->series, is_gauge ? 0 : number)))
        return false;
    wr_fast_add_end(producer);
    return true;
}

/* The same for a histogram. */
WR_ALWAYS_INLINE bool add_to_buckets(struct wr_producer *producer, const struct weir_metric *metric,
                                     weir_number value)
{
    double number = wr_value_double(value);
    /* acquire: pairs with the release of wr_registry_set_view */
    const weir_series *view = atomic_load_explicit(&metric->view, memory_order_acquire);
    if (WR_UNLIKELY(!isfinite(number) || !may_sum(producer) ||
                    !wr_cells_add_to_buckets(&producer->cells, metric->series, view, number)))
        return false;
    wr_fast_add_end(producer);
    return true;
}

static bool open_cell(struct wr_cells *cells, const struct weir_metric *metric, uint8_t instrument)
{
    if (instrument != WEIR_HISTOGRAM)
        return wr_cells_open(cells, metric->series);
    const weir_series *view = atomic_load_explicit(&metric->view, memory_order_acquire);
    return wr_cells_open_buckets(cells, metric->series, view);
}

/* In the journal. */
static void make_cells(struct wr_producer *producer)
{
    struct mask mask;
    struct wr_runtime *runtime = wr_runtime_find();
    enter_engine(&mask);
    wr_dispatcher_make_cells(&wr_runtime_engine(runtime)->dispatcher, producer);
    leave_engine(&mask);
}

/* Makes the place in the thread's cells, and adds. A histogram may need two files. */
WR_NEVER_INLINE static bool add_first(struct wr_producer *producer, const struct weir_metric *metric,
                                      uint8_t instrument, weir_number value, bool sets_level)
{
    struct wr_cells *cells = &producer->cells;
    if (!may_sum(producer) || (instrument == WEIR_GAUGE && cells->is_kept))
        return false;
    while (!open_cell(cells, metric, instrument)) {
        if (!wr_cells_want(cells))
            return false;
        make_cells(producer);
    }
    return instrument == WEIR_HISTOGRAM ? add_to_buckets(producer, metric, value)
                                        : add_to_cell(producer, metric, instrument, value, sets_level);
}

/* Functions of their own, so that the choice between them saves no registers. */
WR_NEVER_INLINE static int add_in_ring(struct wr_producer *producer, struct weir_metric *metric,
                                       weir_number value)
{
    return WR_LIKELY(add_checked(producer, metric, value, true)) ? 0 : wr_intake_add_slow(metric, value);
}

WR_NEVER_INLINE static int add_first_or_in_ring(struct wr_producer *producer, struct weir_metric *metric,
                                                uint8_t instrument, weir_number value)
{
    if (add_first(producer, metric, instrument, value, true))
        return 0;
    if (instrument == WEIR_COUNTER && may_sum(producer) && wr_instrument_accepts(instrument, value) &&
        wr_cells_are_full(&producer->cells, metric->series, wr_value_double(value))) {
        wr_fast_add_end(producer);
        return wr_intake_refuse(WEIR_REFUSED_ARGUMENT, 1, "the total of the counter would not be finite");
    }
    return add_in_ring(producer, metric, value);
}

WR_NEVER_INLINE static int add_measure(struct wr_producer *producer, struct weir_metric *metric,
                                       weir_number value)
{
    return WR_LIKELY(add_to_buckets(producer, metric, value))
               ? 0
               : add_first_or_in_ring(producer, metric, WEIR_HISTOGRAM, value);
}

WR_NEVER_INLINE static int add_summed(struct wr_producer *producer, struct weir_metric *metric,
                                      weir_number value)
{
    /* acquire: as in add_checked */
    uint8_t instrument = atomic_load_explicit(&metric->instrument, memory_order_acquire);
    if (instrument == WEIR_HISTOGRAM)
        return add_measure(producer, metric, value);
    return WR_LIKELY(add_to_cell(producer, metric, instrument, value, true))
               ? 0
               : add_first_or_in_ring(producer, metric, instrument, value);
}

int wr_intake_add_checked(struct wr_producer *producer, struct weir_metric *metric, weir_number value)
{
    return wr_fast_add_is_summed(metric) ? add_summed(producer, metric, value)
                                         : add_in_ring(producer, metric, value);
}

int wr_intake_change(struct weir_metric *metric, double change)
{
    uint8_t instrument = atomic_load_explicit(&metric->instrument, memory_order_acquire);
    if (instrument == WR_INSTRUMENT_REFUSES)
        return wr_intake_refuse_named(metric->stream, 1);
    if (instrument != WEIR_GAUGE)
        return wr_intake_refuse(WEIR_REFUSED_ARGUMENT, 1, "weir_metric_change: the metric is not a gauge");
    _Atomic uint64_t *stored = wr_instrument_level(metric);
    weir_number level = {WEIR_KIND_DOUBLE, {0}};
    bool refused;
    if (!wr_instrument_change_level(stored, change, &level.is.f64))
        return wr_intake_refuse(WEIR_REFUSED_ARGUMENT, 1, "weir_metric_change: " WR_INSTRUMENT_NOT_FINITE);
    struct wr_producer *producer = wr_producer_mine;
    if (WR_LIKELY(!wr_fast_add_is_busy(producer))) {
        wr_fast_add_begin(producer);
        bool is_added =
            wr_fast_add_is_summed(metric) && (add_to_cell(producer, metric, WEIR_GAUGE, level, false) ||
                                              add_first(producer, metric, WEIR_GAUGE, level, false));
        if (WR_LIKELY(is_added || add_checked(producer, metric, level, false)))
            return 0;
    }
    int result = add_slow(metric, level, false, &refused);
    if (refused)
        wr_instrument_change_level(stored, -change, &level.is.f64);
    return result;
}

struct wr_reading wr_intake_begin_reading_without(void)
{
    struct wr_runtime *runtime = wr_runtime_get();
    if (!runtime)
        return (struct wr_reading){NULL, NULL, 0};
    struct wr_reading reading = {NULL, &runtime->registry, wr_cancel_disable()};
    wr_reuse_begin_reading(&runtime->registry);
    return reading;
}

void wr_intake_end_reading_without(struct wr_reading reading)
{
    wr_reuse_end_reading(reading.registry);
    wr_cancel_restore(&reading.cancel);
}

/* Sets the thread's last error, and logs that a limit was reached. */
static void note_found(struct wr_runtime *runtime, const struct weir_metric *metric,
                       const struct wr_error *error)
{
    struct wr_error *mine = error->code ? wr_producers_error(&runtime->producers) : NULL;
    if (mine)
        *mine = *error;
    if (wr_registry_is_shared(metric))
        wr_engine_log_overflow(wr_runtime_engine(runtime));
}

struct weir_metric *wr_intake_find(struct weir_stream *stream, const char *name, uint16_t flags,
                                   const weir_label *labels, size_t count)
{
    WR_CANCEL_DISABLED;
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error; /* it has a kilobyte, so only its code is cleared */
    error.code = 0;
    if (!runtime)
        return wr_registry_refusing()->no_memory_metric;
    struct weir_metric *metric =
        wr_series_get_labeled(&runtime->registry, stream, name, flags, labels, count, &error);
    note_found(runtime, metric, &error);
    return metric;
}

struct weir_metric *wr_intake_find_labeled(struct weir_stream *stream, const char *name,
                                           const weir_label *labels, size_t count)
{
    struct wr_runtime *runtime = wr_runtime_get();
    struct weir_stream *labeled =
        WR_LIKELY(runtime) ? wr_stream_find_labeled(&runtime->registry, stream, labels, count) : NULL;
    if (WR_UNLIKELY(!labeled || wr_reuse_is_leaving(labeled)))
        return wr_intake_find(stream, name, 0, labels, count);
    struct weir_metric *metric = wr_fast_add_find(labeled, name);
    if (WR_UNLIKELY(!metric))
        metric = wr_intake_learn(labeled, name);
    /* one that has ended takes its places in the limits again, if it may */
    return WR_LIKELY(!atomic_load_explicit(&metric->is_ended, memory_order_relaxed))
               ? metric
               : wr_intake_find(stream, name, 0, labels, count);
}

/* Most names are in the registry, and only not in this thread's caches. */
static struct weir_metric *find_known(struct weir_stream *stream, const char *name)
{
    const struct wr_runtime *runtime = wr_runtime_get();
    struct weir_metric *metric =
        WR_LIKELY(runtime && name) ? wr_series_find(&runtime->registry, stream, name, 0) : NULL;
    return WR_LIKELY(metric) ? metric : wr_intake_find(stream, name, 0, NULL, 0);
}

struct weir_metric *wr_intake_learn(struct weir_stream *stream, const char *name)
{
    struct wr_producer *producer = wr_producer_mine;
    struct weir_metric *kept = wr_name_cache_l2_find(&producer->cache_l2, stream, name);
    struct weir_metric *metric = WR_LIKELY(kept) ? kept : find_known(stream, name);
    struct wr_cache_entry *place = wr_cache_place(&producer->cache, stream, name);
    if (metric->stream != stream)
        return metric;
    if (wr_cache_wants(&producer->cache, place, kept ? WR_CACHE_CALM : WR_CACHE_PATIENCE))
        wr_cache_put(&producer->cache, place, metric, name);
    else if (WR_UNLIKELY(!kept) && wr_cache_is_short(&producer->cache))
        wr_name_cache_l2_put(&producer->cache_l2, metric, name);
    return metric;
}

/* The series of a name, which the thread's cache has from now on. */
static inline struct weir_metric *look_up(struct weir_stream *stream, const char *name)
{
    struct weir_metric *metric = WR_LIKELY(name != NULL) ? wr_fast_add_find(stream, name) : NULL;
    return WR_LIKELY(metric) ? metric : wr_intake_learn(stream, name);
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* A value of an event was refused, and with it the event. */
WR_NEVER_INLINE static int refuse_event(struct weir_stream *stream, const weir_value *value, uint64_t count)
{
    const struct weir_metric *metric = look_up(stream, value->name);
    if (metric->stream->refusal)
        return wr_intake_refuse_named(metric->stream, count);
    return wr_intake_refuse_value(metric, WEIR_DOUBLE(value->value), count);
}

/* An event that is written to a ring. */
struct emission {
    const struct wr_ring *ring;
    uint64_t position;
    struct weir_stream *stream;
    const weir_value *values;
    size_t count;
    const weir_sample *pattern;
};

static inline void write_slot(weir_sample *slot, const weir_sample *pattern, const struct weir_metric *metric,
                              double value)
{
    *slot = *pattern;
    slot->series = metric->series;
    slot->value.f64 = value;
}

/* Records the levels of the gauges in an event that can no longer be refused. */
static void set_levels(const struct emission *event)
{
    for (size_t i = 0; i < event->count; i++)
        set_level(look_up(event->stream, event->values[i].name), WEIR_DOUBLE(event->values[i].value));
}

/* Fills the slots from number `first` on, whose series has an instrument or refuses all values. Returns as
 * write_values. */
WR_NEVER_INLINE static const weir_value *write_checked(const struct emission *event, size_t first)
{
    bool has_gauges = false;
    for (size_t i = first; i < event->count; i++) {
        const struct weir_metric *metric = look_up(event->stream, event->values[i].name);
        uint8_t instrument = atomic_load_explicit(&metric->instrument, memory_order_acquire);
        const weir_number value = {WEIR_KIND_DOUBLE, {.f64 = event->values[i].value}};
        if (instrument == WR_INSTRUMENT_REFUSES || !wr_instrument_accepts(instrument, value))
            return &event->values[i];
        has_gauges |= instrument == WEIR_GAUGE;
        write_slot(wr_ring_slot(event->ring, event->position + i), event->pattern, metric, value.is.f64);
    }
    if (has_gauges)
        set_levels(event);
    return NULL;
}

/* Fills the slots of an event. Returns NULL, or the value that is refused; nothing is published then. */
static const weir_value *write_values(const struct wr_ring *ring, uint64_t position, struct weir_stream *stream,
                                      const weir_value *values, size_t count, const weir_sample *pattern)
{
    const weir_value *refused = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct weir_metric *metric = look_up(stream, values[i].name);
        if (WR_UNLIKELY(atomic_load_explicit(&metric->instrument, memory_order_relaxed))) {
            refused = write_checked(&(struct emission){ring, position, stream, values, count, pattern}, i);
            break;
        }
        write_slot(wr_ring_slot(ring, position + i), pattern, metric, values[i].value);
    }
    wr_ring_slot(ring, position + count - 1)->flags &= (uint16_t)~WEIR_SAMPLE_MORE;
    return refused;
}

static int emit_slow(struct weir_stream *stream, const weir_value *values, size_t count)
{
    struct wr_intake_call call = {.group = stream->group, .samples = count, .slots = count};
    const weir_value *refused = NULL;
    int error;
    if (!wr_intake_enter(&call, &error))
        return error;
    error = wr_intake_prepare(&call);
    uint64_t position = wr_ring_position(&call.producer->ring);
    if (!error && !call.unrouted) {
        int64_t time_ns = wr_intake_time(&call);
        const weir_sample pattern = {.flags = call.flags | WEIR_SAMPLE_MORE, .time_ns = time_ns};
        refused = write_values(&call.producer->ring, position, stream, values, count, &pattern);
        if (!refused)
            return wr_intake_finish(&call, position + count);
    }
    wr_intake_leave(&call);
    return refused ? refuse_event(stream, refused, count) : error;
}

/* Writes and publishes an event. Between begin and end. Returns NULL, or the value because of which it is
 * refused.
 */
static const weir_value *emit_at(struct wr_producer *producer, uint64_t position, struct weir_stream *stream,
                                 const weir_value *values, size_t count, uint16_t flags, int64_t time)
{
    const weir_sample pattern = {.flags = flags | WEIR_SAMPLE_MORE, .time_ns = time};
    const weir_value *refused = write_values(&producer->ring, position, stream, values, count, &pattern);
    if (!refused)
        wr_fast_add_publish(producer, position + count);
    return refused;
}

/* An event that needs no time, or for which there are no ticks. Between begin and end. Returns whether it was
 * taken, or refused because of *refused. */
static bool emit_checked(struct wr_producer *producer, struct weir_stream *stream, const weir_value *values,
                         size_t count, const weir_value **refused)
{
    uint64_t position = wr_ring_position(&producer->ring);
    uint32_t state = atomic_load_explicit(&producer->state, memory_order_relaxed);
    uint32_t gate = atomic_load_explicit(&stream->group->gate, memory_order_relaxed);
    bool is_timed = gate == WR_GATE_OPEN && state == WR_PRODUCER_CLOCKED;
    bool is_untimed =
        gate == WR_GATE_OPEN_UNTIMED && (state == WR_PRODUCER_READY || state == WR_PRODUCER_CLOCKED);
    if (!(is_timed || is_untimed) || count > WR_INTAKE_LARGEST ||
        !wr_ring_has_room(&producer->ring, position, count))
        return false;
    *refused =
        emit_at(producer, position, stream, values, count, WR_RING_WALL, is_timed ? wr_clock_wall_ns() : 0);
    return true;
}

int wr_intake_emit(struct weir_stream *stream, const weir_value *values, size_t count)
{
    struct wr_producer *producer = wr_producer_mine;
    const weir_value *refused = NULL;
    if (WR_UNLIKELY(stream->refusal))
        return wr_intake_refuse_named(stream, count);
    if (WR_UNLIKELY(wr_fast_add_is_busy(producer)))
        return emit_slow(stream, values, count);
    wr_fast_add_begin(producer);
    uint64_t position = wr_ring_position(&producer->ring);
    bool is_fast = wr_fast_add_is_possible(producer, &stream->group->gate, WR_GATE_OPEN, position, count) &&
                   count <= WR_INTAKE_LARGEST;
    if (WR_LIKELY(is_fast))
        refused = emit_at(producer, position, stream, values, count, WR_RING_TICKS, (int64_t)wr_clock_ticks());
    else
        is_fast = emit_checked(producer, stream, values, count, &refused);
    wr_fast_add_end(producer);
    if (WR_UNLIKELY(!is_fast))
        return emit_slow(stream, values, count);
    return refused ? refuse_event(stream, refused, count) : 0;
}

/* ---- Queries --------------------------------------------------------------------------------- */

bool wr_intake_is_enabled(struct weir_stream *stream)
{
    WR_CANCEL_DISABLED;
    struct wr_group *group = stream->group;
    struct wr_runtime *runtime;
    if (wr_gate_read(group) == WR_GATE_COLD && (runtime = wr_runtime_get()))
        wr_configure_warm(runtime, group, false);
    enum wr_gate gate = wr_gate_read(group);
    return gate != WR_GATE_OFF && gate != WR_GATE_REFUSE;
}
