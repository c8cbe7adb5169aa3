#include "runtime/fork.h"

#include "os/cancel.h"
#include "os/clock.h"
#include "text/common.h"
#include "handler/instance.h"
#include "os/signals.h"
#include "lane/lane_fork.h"
#include "status/status_file.h"

/* For code of handlers and sources to end, and then for locks that are held for a moment. */
enum { LIMIT_MS = 50 };

static int64_t limit_ns(void)
{
    return wr_clock_monotonic_ns() + LIMIT_MS * WR_NS_PER_MS;
}

bool wr_fork_is_prepared(const struct wr_fork *fork)
{
    return atomic_load(&fork->taken) && pthread_equal(atomic_load(&fork->owner), pthread_self());
}

void wr_fork_prepare(struct wr_fork *fork, struct wr_engine *engine, struct wr_status_file *status)
{
    int64_t deadline_ns = limit_ns();
    sigset_t signals;
    int cancel = wr_cancel_disable(); /* messages are written in between */
    wr_signals_block(&signals);       /* a signal handler that adds must not wait for its own thread's locks */
    if (!wr_lock_enter_by(&fork->gate, deadline_ns)) {
        wr_signals_restore(&signals);
        wr_cancel_restore(&cancel);
        return;
    }
    fork->signals = signals;
    fork->cancel = cancel;
    atomic_store(&fork->owner, pthread_self());
    atomic_store(&fork->taken, true);
    fork->round = wr_dispatcher_visit_by(&engine->dispatcher, deadline_ns);
    /* Workers first: one that destroys a handler needs the plugins, and one that is in emit may need the
     * registry. So this must not hold what it waits for them to release. */
    for (struct wr_lane *lane = fork->round ? engine->lanes : NULL; lane; lane = wr_lane_next(lane))
        wr_lane_fork_prepare(lane, deadline_ns);
    fork->plugins = wr_plugins_hold(engine->plugins, deadline_ns);
    deadline_ns = limit_ns();
    fork->registry = wr_lock_enter_by(&engine->registry->lock, deadline_ns);
    fork->producers = wr_lock_enter_by(&engine->producers->lock, deadline_ns);
    fork->status = wr_lock_enter_by(&status->disk, deadline_ns); /* so that the child knows all descriptors */
}

void wr_fork_parent(struct wr_fork *fork, struct wr_engine *engine, struct wr_status_file *status)
{
    if (!wr_fork_is_prepared(fork))
        return;
    if (fork->status)
        wr_lock_leave(&status->disk);
    for (struct wr_lane *lane = fork->round ? engine->lanes : NULL; lane; lane = wr_lane_next(lane))
        wr_lane_fork_parent(lane);
    if (fork->plugins)
        wr_plugins_let_go(engine->plugins);
    if (fork->producers)
        wr_lock_leave(&engine->producers->lock);
    if (fork->registry)
        wr_lock_leave(&engine->registry->lock);
    sigset_t signals = fork->signals;
    int cancel = fork->cancel;
    bool round = fork->round;
    atomic_store(&fork->taken, false);
    wr_lock_leave(&fork->gate);
    if (round)
        wr_dispatcher_leave(&engine->dispatcher);
    wr_signals_restore(&signals);
    wr_cancel_restore(&cancel);
}

/* A type whose code the fork interrupted may have locks of its own that stay locked in the child. The instance
 * does not abandon its descriptors: they may have just been closed, and their numbers reused. */
static void abandon_lane(const struct wr_lane *lane)
{
    bool torn;
    struct wr_instance *instance = wr_lane_fork_child(lane, &torn);
    if (instance && torn)
        wr_plugins_mark_interrupted(instance->type);
    if (instance)
        wr_instance_abandon(instance, torn);
}

void wr_fork_child(struct wr_engine *engine, struct wr_status_file *status)
{
    /* done once: in a child of a child that never used weir, the descriptors may belong to other files */
    if (!engine->abandoned) {
        for (const struct wr_lane *lane = engine->lanes; lane; lane = wr_lane_next(lane))
            abandon_lane(lane);
        wr_plugins_mark_torn(engine->plugins);
        if (engine->journal)
            wr_journal_abandon(engine->journal);
        wr_recovery_abandon(&engine->recovery);
    }
    wr_status_file_abandon(status);
    engine->abandoned = true;
}

void wr_fork_child_leave(struct wr_fork *fork)
{
    bool prepared = wr_fork_is_prepared(fork);
    sigset_t signals = fork->signals;
    int cancel = fork->cancel;
    *fork = (struct wr_fork){0};
    if (!prepared)
        return;
    wr_signals_restore(&signals);
    wr_cancel_restore(&cancel);
}
