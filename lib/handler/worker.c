#include "handler/worker.h"

#include <stdio.h>

#include "handler/instance.h"
#include "lane/lane_worker.h"
#include "os/clock.h"
#include "os/thread.h"
#include "os/thread_state.h"
#include "segment/batch.h"
#include "text/common.h"

struct worker {
    struct wr_lane *lane;
    const struct wr_worker_env *env;
    bool opened; /* since the present instance became the lane's handler */
    struct wr_thread_state thread_state;
};

/* Ends a call that had an outcome, or, with CLOSE, none. */
static void finish(const struct worker *worker, const struct wr_lane_call *call, weir_outcome *outcome,
                   const struct wr_lane_omissions *omissions)
{
    const char *breach = wr_thread_state_restore(&worker->thread_state);
    wr_lane_worker_finish(worker->lane, call, outcome, omissions, breach);
}

/* ---- The calls ------------------------------------------------------------------------------- */

static void do_open(struct worker *worker, const struct wr_lane_call *call)
{
    const struct wr_instance *instance = call->instance;
    weir_outcome outcome;
    wr_lane_worker_init_outcome(&outcome, 0);
    if (instance->type->is.open)
        instance->type->is.open(instance->self, &outcome);
    if (outcome.code == WEIR_OUTCOME_OK && !worker->opened && worker->env->after_open) {
        worker->opened = true;
        worker->env->after_open(worker->env->ctx, instance->type);
    }
    finish(worker, call, &outcome, NULL);
}

static void do_emit(const struct worker *worker, const struct wr_lane_call *call)
{
    struct wr_instance *instance = call->instance;
    struct wr_label_set *labels = call->labels;
    struct wr_batch_core core = {.registry = worker->env->registry,
                                 .labels_number = labels ? labels->number : 0};
    weir_batch batch = wr_batch_of(&call->range, &core, labels);
    weir_outcome outcome;
    wr_lane_worker_init_outcome(&outcome, batch.count);
    wr_encoder_begin(&instance->encoder);
    instance->type->is.emit(instance->self, &batch, &outcome);
    wr_labels_drop(labels);
    struct wr_lane_omissions omissions = wr_instance_omissions(instance);
    finish(worker, call, &outcome, &omissions);
}

static int64_t milliseconds_until(int64_t deadline_ns)
{
    if (deadline_ns == WR_NEVER)
        return -1;
    int64_t left = deadline_ns - wr_clock_monotonic_ns();
    return left > 0 ? (left + WR_NS_PER_MS - 1) / WR_NS_PER_MS : 0;
}

static void do_flush(const struct worker *worker, const struct wr_lane_call *call)
{
    const struct wr_instance *instance = call->instance;
    weir_outcome outcome;
    wr_lane_worker_init_outcome(&outcome, 0);
    instance->type->is.flush(instance->self, milliseconds_until(call->deadline_ns), &outcome);
    finish(worker, call, &outcome, NULL);
}

static void do_wake(const struct worker *worker, const struct wr_lane_call *call)
{
    const struct wr_instance *instance = call->instance;
    weir_outcome outcome;
    wr_lane_worker_init_outcome(&outcome, 0);
    if (instance->type->is.wake)
        instance->type->is.wake(instance->self, call->why, &outcome);
    finish(worker, call, &outcome, NULL);
}

static void do_close(const struct worker *worker, const struct wr_lane_call *call)
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
    worker->opened = false;
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
    wr_producers_adopt_as_own(worker.env->producers);
    do
        wr_lane_worker_next(lane, &call);
    while (make_call(&worker, &call));
    return NULL;
}

bool wr_worker_start(struct wr_lane *lane, const struct wr_worker_env *env)
{
    return wr_lane_worker_start(lane, env->registry, run, env);
}
