#include "handler/worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "handler/instance.h"
#include "lane/lane_now.h"
#include "lane/lane_spooler.h"
#include "lane/lane_worker.h"
#include "os/clock.h"
#include "os/signals.h"
#include "os/thread.h"
#include "os/thread_state.h"
#include "segment/batch.h"
#include "text/common.h"

/* The calls in which a library is likely to be used for the first time. */
enum { FIRST_CALLS = 4 };

struct worker {
    struct wr_lane *lane;
    const struct wr_worker_env *env;
    unsigned calls; /* of the present instance, up to FIRST_CALLS */
    struct wr_thread_state thread_state;
};

/* Ends a call that had an outcome, or, with CLOSE, none. */
static void finish(struct worker *worker, const struct wr_lane_call *call, weir_outcome *outcome,
                   const struct wr_lane_omissions *omissions)
{
    if (worker->calls < FIRST_CALLS && worker->env->after_call) {
        worker->calls++;
        worker->env->after_call(call->instance->type);
    }
    const char *breach = wr_thread_state_restore(&worker->thread_state);
    wr_lane_worker_finish(worker->lane, call, outcome, omissions, breach);
}

/* ---- The calls ------------------------------------------------------------------------------- */

static void *run_spooler(void *argument)
{
    struct wr_lane *lane = argument;
    wr_thread_set_name("weir:spool");
    wr_producers_mark_own();
    wr_lane_spooler_run(lane);
    return NULL;
}

static void do_open(struct worker *worker, const struct wr_lane_call *call)
{
    const struct wr_instance *instance = call->instance;
    weir_outcome outcome;
    wr_lane_spooler_start(worker->lane, run_spooler);
    wr_lane_worker_init_outcome(&outcome, 0);
    if (instance->type->is.open)
        instance->type->is.open(instance->self, &outcome);
    finish(worker, call, &outcome, NULL);
}

/* Whether the handler gets the parts of summaries in their place. */
static bool takes_parts(const struct wr_instance *instance, const struct wr_lane_call *call)
{
    return !(instance->type->is.kinds & WEIR_KINDS_SUMMARY) && call->range.segment->summaries;
}

/* DROP is of what the handler was given, which may end before the samples that the parts are made of: these
 * are rejected, and the others are offered next. */
static void drop_rest(struct wr_parts *parts, const weir_batch *given, weir_outcome *outcome)
{
    uint32_t rest = given->count - outcome->done;
    wr_parts_advance(parts, rest, rest);
    outcome->code = WEIR_OUTCOME_OK;
    outcome->done += rest;
    outcome->rejected += rest;
}

/* Emits all parts, unless the handler fails or rejects a summary: what it accepts at once may end inside a
 * summary. */
static void emit_parts(struct wr_instance *instance, struct wr_parts *parts, weir_outcome *outcome)
{
    weir_batch rest = wr_parts_rest(parts);
    bool valid = true, more = rest.count > 0;
    char why_rejected[sizeof outcome->reason] = "";
    instance->host.parts = parts;
    while (more) {
        wr_lane_worker_init_outcome(outcome, WR_DONE_BY_CODE);
        instance->type->is.emit(instance->self, &rest, outcome);
        wr_lane_worker_set_done(outcome, rest.count);
        valid = outcome->done <= rest.count && outcome->rejected <= outcome->done;
        if (valid)
            wr_parts_advance(parts, outcome->done, outcome->rejected);
        if (valid && outcome->code == WEIR_OUTCOME_DROP)
            drop_rest(parts, &rest, outcome);
        if (outcome->rejected)
            memcpy(why_rejected, outcome->reason, sizeof why_rejected);
        rest = wr_parts_rest(parts);
        more = valid && outcome->code == WEIR_OUTCOME_OK && outcome->done && rest.count &&
               !wr_parts_has_rejected(parts);
    }
    instance->host.parts = NULL;
    wr_parts_convert(parts, outcome);
    if (outcome->code == WEIR_OUTCOME_OK)
        memcpy(outcome->reason, why_rejected, sizeof why_rejected);
    if (!valid)
        outcome->done = UINT32_MAX; /* the lane counts it as a fault */
}

static void log_apart(struct wr_registry *registry, const struct wr_instance *instance)
{
    const struct wr_parts *parts = &instance->parts;
    if (!parts->apart || atomic_load(&registry->apart_logged) || atomic_exchange(&registry->apart_logged, true))
        return;
    const char *name = parts->apart->name;
    wr_log_write(
        instance->host.log, WEIR_LOG_WARNING,
        "group \"%s\": a name like \"%s.sum\" is in use by itself, so the summaries of \"%s\" are called "
        "\"%s.distribution.sum\" and so on",
        parts->apart->stream->group->name, name, name, name);
}

/* Parts that the format cannot represent are left out, and not counted: the summary was delivered. */
static void emit_in_parts(const struct worker *worker, struct wr_instance *instance,
                          const struct wr_lane_call *call, const weir_batch *batch, weir_outcome *outcome)
{
    enum wr_parts_result result =
        wr_parts_make(&instance->parts, batch, &call->range.id, worker->env->registry, &instance->parts_rules);
    log_apart(worker->env->registry, instance);
    switch (result) {
    case WR_PARTS_MADE: emit_parts(instance, &instance->parts, outcome); break;
    case WR_PARTS_REFUSED:
        outcome->done = outcome->rejected = 1;
        snprintf(outcome->reason, sizeof outcome->reason, "%s", instance->parts.why);
        break;
    default:
        outcome->code = WEIR_OUTCOME_RETRY;
        outcome->done = 0;
        snprintf(outcome->reason, sizeof outcome->reason, "out of memory for the parts of summaries");
    }
}

static void do_emit(struct worker *worker, const struct wr_lane_call *call)
{
    struct wr_instance *instance = call->instance;
    struct wr_label_set *labels = call->labels;
    struct wr_batch_core core = {.registry = worker->env->registry,
                                 .labels_number = labels ? labels->number : 0};
    weir_batch batch = wr_batch_of(&call->range, &core, labels);
    weir_outcome outcome;
    wr_lane_worker_init_outcome(&outcome, WR_DONE_BY_CODE);
    wr_encoder_begin(&instance->encoder);
    bool in_parts = takes_parts(instance, call);
    if (in_parts) {
        emit_in_parts(worker, instance, call, &batch, &outcome);
    } else {
        wr_ahead_begin(&instance->host.ahead, call, worker->env->registry);
        instance->type->is.emit(instance->self, &batch, &outcome);
        wr_lane_worker_set_done(&outcome, batch.count);
        wr_ahead_end(&instance->host.ahead);
    }
    wr_labels_drop(labels);
    struct wr_lane_omissions omissions = wr_instance_omissions(instance);
    finish(worker, call, &outcome, in_parts ? NULL : &omissions);
}

/* Nothing here may allocate: the thread may be in a signal handler that has interrupted malloc. */
void wr_worker_emit_now(const struct wr_lane_now *now, const sigset_t *before)
{
    struct wr_instance *instance = now->call.instance;
    struct wr_label_set *labels = now->call.labels;
    struct wr_batch_core core = {.registry = wr_lane_worker_env(now->lane)->registry,
                                 .labels_number = labels ? labels->number : 0};
    weir_batch batch = wr_batch_of(&now->call.range, &core, labels);
    weir_outcome outcome;
    int error = errno;
    struct wr_signals_raised raised = wr_signals_begin_raising(before);
    wr_lane_worker_init_outcome(&outcome, WR_DONE_BY_CODE);
    wr_encoder_begin(&instance->encoder);
    wr_encoder_set_fixed(&instance->encoder, true);
    instance->type->is.emit_now(instance->self, &batch, &outcome);
    wr_lane_worker_set_done(&outcome, batch.count);
    wr_encoder_set_fixed(&instance->encoder, false);
    if (outcome.code != WEIR_OUTCOME_OK)
        wr_signals_discard_raised(&raised);
    errno = error;
    wr_labels_drop(labels);
    struct wr_lane_omissions omissions = wr_instance_omissions(instance);
    wr_lane_now_finish(now, &outcome, &omissions);
}

static int64_t milliseconds_until(int64_t deadline_ns)
{
    if (deadline_ns == WR_NEVER)
        return -1;
    int64_t left = deadline_ns - wr_clock_monotonic_ns();
    return left > 0 ? (left + WR_NS_PER_MS - 1) / WR_NS_PER_MS : 0;
}

static void do_flush(struct worker *worker, const struct wr_lane_call *call)
{
    const struct wr_instance *instance = call->instance;
    weir_outcome outcome;
    wr_lane_worker_init_outcome(&outcome, 0);
    instance->type->is.flush(instance->self, milliseconds_until(call->deadline_ns), &outcome);
    finish(worker, call, &outcome, NULL);
}

static void do_wake(struct worker *worker, const struct wr_lane_call *call)
{
    const struct wr_instance *instance = call->instance;
    weir_outcome outcome;
    wr_lane_worker_init_outcome(&outcome, 0);
    if (instance->type->is.wake)
        instance->type->is.wake(instance->self, call->why, &outcome);
    finish(worker, call, &outcome, NULL);
}

static void do_close(struct worker *worker, const struct wr_lane_call *call)
{
    const struct wr_instance *instance = call->instance;
    if (instance->type->is.close)
        instance->type->is.close(instance->self);
    finish(worker, call, NULL, NULL);
}

/* Returns whether there is a successor. */
static bool do_destroy(struct worker *worker, const struct wr_lane_call *call)
{
    wr_instance_free(call->instance);
    const char *breach = wr_thread_state_restore(&worker->thread_state);
    struct wr_instance *successor = wr_lane_worker_replace(worker->lane, breach);
    if (!successor)
        return false;
    wr_instance_attach(successor, worker->lane);
    worker->calls = 0;
    return true;
}

/* ---- The thread ------------------------------------------------------------------------------ */

/* Returns false if the thread must end. */
static bool make_call(struct worker *worker, const struct wr_lane_call *call)
{
    switch (call->kind) {
    case WR_LANE_CALL_OPEN: do_open(worker, call); break;
    case WR_LANE_CALL_EMIT: do_emit(worker, call); break;
    case WR_LANE_CALL_FLUSH: do_flush(worker, call); break;
    case WR_LANE_CALL_WAKE: do_wake(worker, call); break;
    case WR_LANE_CALL_CLOSE: do_close(worker, call); break;
    case WR_LANE_CALL_DESTROY: return do_destroy(worker, call);
    }
    return true;
}

static void *run(void *argument)
{
    struct wr_lane *lane = argument;
    struct worker worker = {.lane = lane, .env = wr_lane_worker_env(lane)};
    struct wr_lane_call call;
    char name[32];
    snprintf(name, sizeof name, "weir:%s", wr_lane_name(lane));
    wr_thread_set_name(name);
    worker.thread_state = wr_thread_state_save();
    wr_producers_mark_own();
    do
        wr_lane_worker_next(lane, &call);
    while (make_call(&worker, &call));
    return NULL;
}

bool wr_worker_claim(struct wr_lane *lane, const struct wr_worker_env *env)
{
    return wr_lane_worker_claim(lane, env->registry, env);
}

bool wr_worker_start(struct wr_lane *lane)
{
    return wr_lane_worker_start(lane, run);
}
