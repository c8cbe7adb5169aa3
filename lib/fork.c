#include "fork.h"

#include "clock.h"
#include "common.h"
#include "instance.h"

enum { PATIENCE_MS = 50 };

/* Waits until the worker is outside its handler's code, and keeps it there. */
static void hold_lane(struct wr_lane *lane, int64_t deadline_ns)
{
    lane->fork_unsafe = true;
    if (!wr_lock_enter_by(&lane->lock, deadline_ns))
        return;
    lane->held = true;
    while (lane->in_callback && wr_clock_monotonic_ns() < deadline_ns)
        wr_condition_wait(&lane->progress, &lane->lock, deadline_ns);
    lane->fork_unsafe = lane->in_callback;
    wr_lane_leave(lane);
}

static void let_go(struct wr_lane *lane)
{
    wr_lock_enter(&lane->lock);
    lane->held = false;
    lane->fork_unsafe = false;
    wr_condition_wake(&lane->work);
    wr_lane_leave(lane);
}

void wr_fork_prepare(struct wr_fork *fork, struct wr_engine *engine)
{
    int64_t deadline_ns = wr_clock_monotonic_ns() + PATIENCE_MS * WR_NS_PER_MS;
    *fork = (struct wr_fork){.engine = engine};
    fork->round = wr_dispatcher_visit_by(&engine->dispatcher, deadline_ns);
    fork->registry = wr_lock_enter_by(&engine->registry->lock, deadline_ns);
    fork->producers = wr_lock_enter_by(&engine->producers->lock, deadline_ns);
    fork->plugins = wr_plugins_hold(engine->plugins, deadline_ns);
    for (struct wr_lane *lane = fork->round ? engine->lanes : NULL; lane; lane = lane->next)
        hold_lane(lane, deadline_ns);
}

void wr_fork_parent(struct wr_fork *fork)
{
    struct wr_engine *engine = fork->engine;
    if (!engine)
        return;
    for (struct wr_lane *lane = fork->round ? engine->lanes : NULL; lane; lane = lane->next)
        let_go(lane);
    if (fork->plugins)
        wr_plugins_let_go(engine->plugins);
    if (fork->producers)
        wr_lock_leave(&engine->producers->lock);
    if (fork->registry)
        wr_lock_leave(&engine->registry->lock);
    if (fork->round)
        wr_dispatcher_leave(&engine->dispatcher);
    fork->engine = NULL;
}

/* A type whose code was torn in the middle may have left locks of its own behind that nobody will ever free. */
static void abandon_lane(const struct wr_lane *lane)
{
    if (!lane->instance)
        return;
    if (lane->fork_unsafe)
        atomic_store(&lane->instance->type->fork_unsafe, true);
    else
        wr_instance_abandon(lane->instance);
}

void wr_fork_child(struct wr_fork *fork)
{
    if (!fork->engine)
        return;
    for (const struct wr_lane *lane = fork->round ? fork->engine->lanes : NULL; lane; lane = lane->next)
        abandon_lane(lane);
    wr_plugins_mark_torn(fork->engine->plugins);
    fork->engine = NULL;
}
