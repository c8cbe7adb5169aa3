#include "handler/worker.h"

#include <stdio.h>

#include "os/clock.h"
#include "text/common.h"
#include "handler/instance.h"
#include "os/thread_state.h"
#include "lane/outcome.h"
#include "lane/spool_io.h"
#include "lane/lane_next.h"
#include "os/thread.h"

struct worker {
    struct wr_lane *lane;
    const struct wr_crew *crew;
    bool opened; /* since this instance came */
    struct wr_thread_state thread_state;
};

/* ---- Into the handler and back --------------------------------------------------------------- */

/* After a shutdown that did not wait for this thread any longer, nothing that it could still do is of use to
 * anybody, and the program may be taking apart what it would touch. */
static void stay_if_abandoned(struct wr_lane *lane)
{
    if (!lane->abandoned)
        return;
    wr_lane_leave(lane);
    wr_thread_park();
}

static void enter(struct wr_lane *lane)
{
    stay_if_abandoned(lane);
    lane->in_callback = true;
    lane->busy_since_ns = wr_clock_monotonic_ns();
    wr_lane_leave(lane);
}

static void come_back(const struct worker *worker)
{
    struct wr_lane *lane = worker->lane;
    const char *breach = wr_thread_state_restore(&worker->thread_state);
    wr_lock_enter(&lane->lock);
    stay_if_abandoned(lane);
    if (breach)
        lane->breach = breach;
    lane->in_callback = false;
    lane->busy_since_ns = 0;
    wr_condition_wake(&lane->progress);
}

/* ---- The steps ------------------------------------------------------------------------------- */

static void do_open(struct worker *worker)
{
    struct wr_lane *lane = worker->lane;
    const struct wr_instance *instance = lane->instance;
    weir_outcome outcome;
    wr_outcome_init(&outcome, 0);
    enter(lane);
    if (instance->type->is.open)
        instance->type->is.open(instance->self, &outcome);
    if (outcome.code == WEIR_OUTCOME_OK && !worker->opened && worker->crew->after_open) {
        worker->opened = true;
        worker->crew->after_open(worker->crew->ctx, instance->type);
    }
    come_back(worker);
    wr_outcome_of_open(lane, &outcome, wr_clock_monotonic_ns());
}

static void do_emit(struct worker *worker)
{
    struct wr_lane *lane = worker->lane;
    struct wr_instance *instance = lane->instance;
    struct wr_label_set *labels = lane->flight.stashed ? lane->spool_state.labels : lane->labels;
    struct wr_batch_core core = {worker->crew->registry, labels ? labels->number : 0};
    weir_batch batch = wr_batch_of(&lane->flight.range, &core, labels);
    weir_outcome outcome;
    wr_outcome_init(&outcome, batch.count);
    wr_labels_hold(labels);
    enter(lane);
    wr_encoder_begin(&instance->encoder);
    instance->type->is.emit(instance->self, &batch, &outcome);
    wr_labels_drop(labels);
    struct wr_outcome_omissions omissions = wr_instance_omissions(instance);
    come_back(worker);
    wr_outcome_of_emit(lane, &outcome, &omissions, wr_clock_monotonic_ns());
}

static int64_t milliseconds_until(int64_t deadline_ns)
{
    if (deadline_ns == WR_NEVER)
        return -1;
    int64_t left = deadline_ns - wr_clock_monotonic_ns();
    return left > 0 ? (left + WR_NS_PER_MS - 1) / WR_NS_PER_MS : 0;
}

static void do_flush(const struct worker *worker, int64_t deadline_ns)
{
    struct wr_lane *lane = worker->lane;
    const struct wr_instance *instance = lane->instance;
    uint64_t wanted = lane->flush_wanted;
    weir_outcome outcome;
    wr_outcome_init(&outcome, 0);
    enter(lane);
    instance->type->is.flush(instance->self, milliseconds_until(deadline_ns), &outcome);
    come_back(worker);
    wr_outcome_of_flush(lane, &outcome, wanted, wr_clock_monotonic_ns());
}

static void do_wake(const struct worker *worker, int why)
{
    struct wr_lane *lane = worker->lane;
    const struct wr_instance *instance = lane->instance;
    weir_outcome outcome;
    wr_outcome_init(&outcome, 0);
    if (why == WEIR_WAKE_TIMER)
        lane->wake_at_ns = 0;
    enter(lane);
    if (instance->type->is.wake)
        instance->type->is.wake(instance->self, why, &outcome);
    come_back(worker);
    wr_outcome_of_wake(lane, &outcome, why, wr_clock_monotonic_ns());
}

static void do_close(const struct worker *worker)
{
    struct wr_lane *lane = worker->lane;
    const struct wr_instance *instance = lane->instance;
    enter(lane);
    if (instance->type->is.close)
        instance->type->is.close(instance->self);
    come_back(worker);
    wr_outcome_of_close(lane);
}

/* Under the lock before and after, not in between: the plugin destroys. */
static void destroy_instance(const struct worker *worker)
{
    struct wr_lane *lane = worker->lane;
    struct wr_instance *instance = lane->instance;
    lane->instance = NULL;
    enter(lane);
    wr_instance_free(instance);
    come_back(worker);
}

/* What follows takes the place of what was, also where it is to go, too: it delivers what has come for it
 * meanwhile. Answers whether there is any. */
static bool do_replace(struct worker *worker)
{
    struct wr_lane *lane = worker->lane;
    destroy_instance(worker);
    if (!lane->successor)
        return false;
    wr_instance_take_over(lane);
    worker->opened = false;
    return true;
}

static void go_to_disk(struct wr_lane *lane, void (*operate)(struct wr_lane *lane))
{
    operate(lane);
    stay_if_abandoned(lane);
}

/* ---- The thread ------------------------------------------------------------------------------ */

/* Under the lock. false: this was the end. */
static bool take_step(struct worker *worker)
{
    struct wr_lane *lane = worker->lane;
    go_to_disk(lane, wr_spool_io_settle);
    struct wr_lane_next_step step = wr_lane_next(lane, wr_clock_monotonic_ns());
    switch (step.kind) {
    case WR_LANE_NEXT_SLEEP: wr_condition_wait(&lane->work, &lane->lock, step.until_ns); break;
    case WR_LANE_NEXT_OPEN: do_open(worker); break;
    case WR_LANE_NEXT_EMIT: do_emit(worker); break;
    case WR_LANE_NEXT_FLUSH: do_flush(worker, step.until_ns); break;
    case WR_LANE_NEXT_WAKE: do_wake(worker, step.why); break;
    case WR_LANE_NEXT_CLOSE: do_close(worker); break;
    case WR_LANE_NEXT_REPLACE: return do_replace(worker);
    case WR_LANE_NEXT_SEARCH: go_to_disk(lane, wr_spool_io_search); break;
    case WR_LANE_NEXT_SPOOL: go_to_disk(lane, wr_spool_io_move); break;
    case WR_LANE_NEXT_FETCH: go_to_disk(lane, wr_spool_io_fetch); break;
    case WR_LANE_NEXT_END: go_to_disk(lane, wr_spool_io_tidy); return do_replace(worker);
    }
    return true;
}

/* Messages are said outside the lock, so it is left where there is one. */
static void let_speak(struct wr_lane *lane)
{
    if (!lane->remarks.count)
        return;
    wr_lane_leave(lane);
    wr_lock_enter(&lane->lock);
}

static void *run(void *argument)
{
    struct wr_lane *lane = argument;
    struct worker worker = {.lane = lane, .crew = lane->crew};
    char name[32];
    snprintf(name, sizeof name, "weir:%s", lane->name);
    wr_thread_set_name(name);
    worker.thread_state = wr_thread_state_save();
    wr_producers_adopt_as_own(worker.crew->producers);
    wr_lock_enter(&lane->lock);
    while (take_step(&worker))
        let_speak(lane);
    lane->worker = WR_WORKER_ENDED;
    wr_condition_wake(&lane->progress);
    wr_lane_leave(lane);
    return NULL;
}

bool wr_worker_start(struct wr_lane *lane, const struct wr_crew *crew)
{
    wr_lock_enter(&lane->lock);
    bool running = lane->worker == WR_WORKER_RUNNING;
    lane->spool_state.registry = crew->registry;
    if (lane->worker == WR_WORKER_ENDED)
        wr_thread_release(lane->thread);
    if (!running) {
        lane->crew = crew;
        running = wr_thread_start(run, lane, &lane->thread); /* it waits for the lock we hold */
        if (!running && !lane->no_thread)
            wr_lane_say(lane, WEIR_LOG_ERROR,
                        "no thread can be started for it; what comes is dropped until one can");
        lane->worker = running ? WR_WORKER_RUNNING : WR_WORKER_NONE;
        lane->no_thread = !running;
    }
    wr_lane_leave(lane);
    return running;
}
