#include "runtime/intake.h"

#include <string.h>

#include "runtime/configure.h"
#include "dispatch/dispatcher.h"
#include "engine/engine.h"
#include "text/error.h"
#include "registry/series.h"
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

static enum weir_refusal refusal_of(int error)
{
    switch (error) {
    case WEIR_ERR_MEMORY: return WEIR_REFUSED_MEMORY;
    case WEIR_ERR_LIMIT: return WEIR_REFUSED_LIMIT;
    default: return WEIR_REFUSED_NAME;
    }
}

int wr_intake_refuse_named(const struct weir_stream *stream, uint64_t count)
{
    struct wr_runtime *runtime = wr_runtime_get();
    return runtime ? wr_producers_refuse(&runtime->producers, refusal_of(stream->refusal), count)
                   : wr_producers_refuse_early(count);
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

/* As wr_fast_add_begin, also where there is no membarrier: there the store of `busy` and the load of `state`
 * need a fence. */
static void begin_writing(struct wr_producer *producer)
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
    begin_writing(producer);
}

bool wr_intake_enter(struct wr_intake_call *call, int *error)
{
    struct wr_producer *producer = wr_producer_mine;
    if (producer->home && wr_fast_add_is_busy(producer) && !producer->shared) {
        *error = refuse_nested(call->samples);
        return false;
    }
    if ((!producer->home || wr_producer_is_cold(producer)) && !(producer = attach(call->samples, error)))
        return false;
    call->runtime = wr_runtime_get();
    call->producer = producer;
    if (!call->runtime) {
        *error = WEIR_ERR_MEMORY;
        return false;
    }
    if (producer->shared)
        enter_shared(call);
    begin_writing(producer);
    return true;
}

void wr_intake_leave(struct wr_intake_call *call)
{
    wr_fast_add_end(call->producer);
    if (call->producer->shared)
        leave_shared(call);
}

/* ---- Forks in the middle of a call ------------------------------------------------------------
 *
 * A signal handler may fork while it interrupts a call, and return in the child too. There the call ends on a
 * producer that is cold, without any use of the parent's engine: whether it is cold is checked with signals
 * blocked, before each use of the engine. */

static bool is_forked(const struct wr_intake_call *call)
{
    return wr_producer_is_cold(call->producer);
}

static int refuse_forked(uint64_t count)
{
    return wr_intake_refuse(WEIR_REFUSED_BUSY, count, "a signal handler forked while it interrupted weir");
}

/* Blocks signals. Returns whether the engine may be used until leave_engine. */
static bool enter_engine(const struct wr_intake_call *call, sigset_t *signals)
{
    wr_signals_block(signals);
    if (!is_forked(call))
        return true;
    wr_signals_restore(signals);
    return false;
}

static void leave_engine(const sigset_t *signals)
{
    wr_signals_restore(signals);
}

/* ---- The gate -------------------------------------------------------------------------------- */

static bool is_closed(const struct wr_intake_call *call)
{
    return atomic_load(&call->producer->state) == WR_PRODUCER_CLOSED;
}

/* Whether the call has to end: weir was shut down, or this is a child now. Returns 0, or the error to return.
 */
static int check_state(const struct wr_intake_call *call)
{
    if (is_forked(call))
        return refuse_forked(call->samples);
    return is_closed(call) ? refuse_closed(call->samples) : 0;
}

/* The group's first value in this process. May load plugins, or wait for the thread that does. Signals are
 * blocked: see is_forked. The caller then checks the state. */
static enum wr_warmth warm(struct wr_intake_call *call)
{
    sigset_t signals;
    if (!enter_engine(call, &signals))
        return WR_WARMTH_WARM;
    begin_waiting(call->producer);
    enum wr_warmth warmth = wr_configure_warm(call->runtime, call->group, true);
    end_waiting(call->producer);
    leave_engine(&signals);
    return warmth;
}

/* Waits for the group's gate. Returns 0, or the error to return. */
static int pass_gate(struct wr_intake_call *call)
{
    enum wr_warmth warmth;
    int error;
    for (;;) {
        if ((error = check_state(call)))
            return error;
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
            wr_unrouted_count(&call->producer->unrouted, call->group, call->samples);
            call->unrouted = true;
            return 0;
        case WR_GATE_SYNC: call->flags |= call->producer->own ? 0 : WR_RING_SYNC; return 0;
        case WR_GATE_WAIT:
            if (call->producer->own) {
                call->flags |= WR_RING_NO_WAIT;
                return 0;
            }
            begin_waiting(call->producer);
            wr_gate_wait(call->group, WR_NS_PER_S);
            end_waiting(call->producer);
            break;
        default: return 0;
        }
    }
}

/* ---- The ring -------------------------------------------------------------------------------- */

static struct wr_dispatcher *dispatcher_of(const struct wr_intake_call *call)
{
    return &wr_runtime_engine(call->runtime)->dispatcher;
}

/* Runs a round if the dispatcher's thread cannot be waited for: it could not be started, or it may be waiting
 * for this thread, which is one of weir's own. */
static void run_round_if_needed(const struct wr_intake_call *call)
{
    struct wr_dispatcher *dispatcher = dispatcher_of(call);
    sigset_t signals;
    int64_t next_ns;
    if (!call->producer->own && atomic_load(&dispatcher->running))
        return;
    if (!enter_engine(call, &signals))
        return;
    wr_dispatcher_visit(dispatcher);
    if (call->producer->own || !wr_dispatcher_start(dispatcher))
        wr_dispatcher_round(dispatcher, &next_ns);
    wr_dispatcher_leave(dispatcher);
    leave_engine(&signals);
}

/* Waits until the ring has room. Returns 0, or the error to return. */
static int find_room(struct wr_intake_call *call)
{
    struct wr_ring *ring = &call->producer->ring;
    int error;
    if (wr_ring_fill(ring) > ring->size / 2)
        wr_dispatcher_hurry(dispatcher_of(call));
    while (!wr_ring_find_room(ring, call->slots)) {
        if ((error = check_state(call)))
            return error;
        if (wr_configure_is_here(call->runtime))
            return wr_intake_refuse(WEIR_REFUSED_BUSY, call->samples,
                                    "this thread is configuring weir, and its ring is full");
        begin_waiting(call->producer);
        run_round_if_needed(call);
        if (!call->producer->own)
            wr_dispatcher_wait_room(dispatcher_of(call), call->producer, call->slots, 100 * WR_NS_PER_MS);
        end_waiting(call->producer);
        if ((error = check_state(call)))
            return error;
    }
    return 0;
}

/* Into the journal. */
static void move_ring(const struct wr_intake_call *call)
{
    sigset_t signals;
    if (!enter_engine(call, &signals))
        return;
    wr_dispatcher_renew(dispatcher_of(call), call->producer);
    leave_engine(&signals);
}

int wr_intake_prepare(struct wr_intake_call *call)
{
    if (call->slots > WR_INTAKE_LARGEST)
        return wr_intake_refuse(WEIR_REFUSED_TOO_LARGE, call->samples,
                                "the event is larger than a quarter of the thread's ring (32 KiB)");
    int error = pass_gate(call);
    if (error || call->unrouted)
        return error;
    if (WR_UNLIKELY(atomic_load_explicit(&call->producer->renew, memory_order_relaxed)))
        move_ring(call);
    return find_room(call);
}

/* ---- Writing --------------------------------------------------------------------------------- */

int64_t wr_intake_time(struct wr_intake_call *call)
{
    if (atomic_load_explicit(&call->producer->ticks, memory_order_relaxed)) {
        call->flags |= WR_RING_TICKS;
        return (int64_t)wr_clock_ticks();
    }
    call->flags |= WR_RING_WALL;
    return wr_clock_wall_ns();
}

static void publish(struct wr_intake_call *call, uint64_t position)
{
    wr_fast_add_publish(call->producer, position);
    if (!call->producer->fenced)
        return;
    /* without membarrier a fence is needed between the store of tail and the load of parked: both are repeated
     * as sequentially consistent operations */
    atomic_exchange(&call->producer->ring.tail, position);
    if (atomic_load(&call->producer->ring.parked))
        wr_intake_wake_dispatcher(call->producer);
}

void wr_intake_wake_dispatcher(struct wr_producer *producer)
{
    struct wr_runtime *runtime = wr_runtime_get();
    if (runtime)
        wr_dispatcher_wake(&wr_runtime_engine(runtime)->dispatcher, producer);
}

/* ---- Synchronous calls ----------------------------------------------------------------------- */

/* Returns false if this is a child now. */
static bool read_progress(const struct wr_intake_call *call, struct wr_engine_progress *progress)
{
    sigset_t signals;
    if (!enter_engine(call, &signals))
        return false;
    *progress = wr_engine_sync_progress(wr_runtime_engine(call->runtime), call->group);
    leave_engine(&signals);
    return true;
}

/* Waits while the handlers make progress; a call fails after block_timeout without any. */
static int wait_for_handlers(const struct wr_intake_call *call, struct wr_ticket ticket)
{
    struct wr_engine_progress before, now;
    if (!read_progress(call, &before))
        return WEIR_ERR_BUSY;
    for (;;) {
        int result;
        if (wr_ticket_wait(ticket, wr_clock_monotonic_ns() + before.timeout_ns, &result))
            return is_forked(call) ? WEIR_ERR_BUSY : result;
        if (!read_progress(call, &now))
            return WEIR_ERR_BUSY;
        if (is_closed(call) || now.settled == before.settled)
            return WEIR_ERR_TIMEOUT;
        before = now;
    }
}

static int set_error(const struct wr_intake_call *call, int result)
{
    static const char *const messages[] = {"the handler dropped the value",
                                           "the handler has not settled the value in time"};
    struct wr_error *mine = result ? wr_producers_error(&call->runtime->producers) : NULL;
    if (mine && !wr_engine_explain(wr_runtime_engine(call->runtime), call->group, result, mine))
        wr_error_set(mine, result, "%s", messages[result == WEIR_ERR_TIMEOUT]);
    return result;
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
    publish(call, position);
    if (sync) {
        begin_waiting(call->producer);
        wr_dispatcher_hurry(dispatcher_of(call));
    }
    int result = sync ? wait_for_handlers(call, ticket) : 0;
    bool forked = is_forked(call);
    wr_intake_leave(call);
    if (result && forked)
        return refuse_forked(call->samples);
    return set_error(call, result);
}

/* ---- One value ------------------------------------------------------------------------------- */

int wr_intake_add_slow(struct weir_metric *metric, struct wr_value value)
{
    struct wr_intake_call call = {.group = metric->stream->group, .samples = 1, .slots = 1};
    int error;
    if (metric->stream->refusal)
        return wr_intake_refuse_named(metric->stream, 1);
    if (!wr_intake_enter(&call, &error))
        return error;
    error = wr_intake_prepare(&call);
    if (error || call.unrouted) {
        wr_intake_leave(&call);
        return error;
    }
    struct wr_ring *ring = &call.producer->ring;
    uint64_t position = wr_ring_position(ring);
    int64_t time_ns = wr_intake_time(&call);
    *wr_ring_slot(ring, position) = (weir_sample){
        .series = metric->series,
        .kind = value.kind,
        .flags = (uint16_t)(metric->flags | call.flags),
        .time_ns = time_ns,
        .value.i64 = value.is.i64,
    };
    return wr_intake_finish(&call, position + 1);
}

struct weir_metric *wr_intake_find(struct weir_stream *stream, const char *name, uint16_t flags)
{
    struct wr_runtime *runtime = wr_runtime_get();
    struct wr_error error; /* it has a kilobyte, so only its code is cleared */
    error.code = 0;
    if (!runtime)
        return wr_registry_refusing()->no_memory_metric;
    struct weir_metric *metric = wr_series_get(&runtime->registry, stream, name, flags, &error);
    struct wr_error *mine = error.code ? wr_producers_error(&runtime->producers) : NULL;
    if (mine)
        *mine = error;
    if (metric == atomic_load_explicit(&stream->group->overflow, memory_order_relaxed))
        wr_engine_say_overflow(wr_runtime_engine(runtime));
    return metric;
}

/* Most names are in the registry, and only not in this thread's caches. */
static struct weir_metric *find_known(struct weir_stream *stream, const char *name)
{
    const struct wr_runtime *runtime = wr_runtime_get();
    struct weir_metric *metric =
        WR_LIKELY(runtime && name) ? wr_series_find(&runtime->registry, stream, name, 0) : NULL;
    return WR_LIKELY(metric) ? metric : wr_intake_find(stream, name, 0);
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

/* Fills the slots of an event. Returns NULL, or the refusing series of a bad name; nothing is published then.
 */
static const struct weir_metric *write_values(const struct wr_ring *ring, uint64_t position,
                                              struct weir_stream *stream, const weir_value *values,
                                              size_t count, const weir_sample *pattern)
{
    for (size_t i = 0; i < count; i++) {
        const struct weir_metric *metric = look_up(stream, values[i].name);
        if (WR_UNLIKELY(metric->stream->refusal))
            return metric;
        weir_sample *sample = wr_ring_slot(ring, position + i);
        *sample = *pattern;
        sample->series = metric->series;
        sample->value.f64 = values[i].value;
    }
    wr_ring_slot(ring, position + count - 1)->flags &= (uint16_t)~WEIR_SAMPLE_MORE;
    return NULL;
}

static int emit_slow(struct weir_stream *stream, const weir_value *values, size_t count)
{
    struct wr_intake_call call = {.group = stream->group, .samples = count, .slots = count};
    const struct weir_metric *refused = NULL;
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
    return refused ? wr_intake_refuse_named(refused->stream, count) : error;
}

int wr_intake_emit(struct weir_stream *stream, const weir_value *values, size_t count)
{
    struct wr_producer *producer = wr_producer_mine;
    const struct weir_metric *refused = NULL;
    if (WR_UNLIKELY(stream->refusal))
        return wr_intake_refuse_named(stream, count);
    if (WR_UNLIKELY(wr_fast_add_is_busy(producer)))
        return emit_slow(stream, values, count);
    wr_fast_add_begin(producer);
    uint64_t position = wr_ring_position(&producer->ring);
    bool is_fast =
        wr_fast_add_is_possible(producer, &stream->group->gate, position, count) && count <= WR_INTAKE_LARGEST;
    if (WR_LIKELY(is_fast)) {
        const weir_sample pattern = {.flags = WR_RING_TICKS | WEIR_SAMPLE_MORE,
                                     .time_ns = (int64_t)wr_clock_ticks()};
        refused = write_values(&producer->ring, position, stream, values, count, &pattern);
        if (!refused)
            wr_fast_add_publish(producer, position + count);
    }
    wr_fast_add_end(producer);
    if (WR_UNLIKELY(!is_fast))
        return emit_slow(stream, values, count);
    return refused ? wr_intake_refuse_named(refused->stream, count) : 0;
}

/* ---- Queries --------------------------------------------------------------------------------- */

bool wr_intake_is_enabled(struct weir_stream *stream)
{
    struct wr_group *group = stream->group;
    struct wr_runtime *runtime;
    if (wr_gate_read(group) == WR_GATE_COLD && (runtime = wr_runtime_get()))
        wr_configure_warm(runtime, group, false);
    enum wr_gate gate = wr_gate_read(group);
    return gate != WR_GATE_OFF && gate != WR_GATE_REFUSE;
}
