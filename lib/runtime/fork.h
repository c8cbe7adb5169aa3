/* fork: fork(2) in a process with running threads.
 *
 * Before: keeps workers out of their handlers' code and takes the locks that must be consistent in the child,
 * all within 50 ms. A handler that is still busy then cannot be used in the child. After, in the parent:
 * releases everything. After, in the child: abandons the parent's handlers; nothing else of the parent's engine
 * is ever used. */
#ifndef WR_FORK_H
#define WR_FORK_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "engine/engine.h"
#include "os/lock.h"

/* The locks that were taken before a fork, to be released after it. Several threads may fork at once: the gate
 * lets one prepare its fork; a thread that has waited for 50 ms forks unprepared. */
struct wr_fork {
    struct wr_lock gate;
    _Atomic bool taken;       /* the fork of the thread `owner` is prepared */
    _Atomic(pthread_t) owner; /* written with the gate held */
    bool round, registry, producers, plugins, status;
    sigset_t signals; /* the owner's */
    int cancel;       /* its cancellation state */
};

struct wr_status_file;

/* Whether the calling thread's fork is prepared, and has not been left. */
bool wr_fork_is_prepared(const struct wr_fork *fork);

void wr_fork_prepare(struct wr_fork *fork, struct wr_engine *engine, struct wr_status_file *status);
void wr_fork_parent(struct wr_fork *fork, struct wr_engine *engine, struct wr_status_file *status);

/* In the child: gives up the parent's engine and status file; then, at the end of the fork, restores the
 * thread. */
void wr_fork_child(struct wr_engine *engine, struct wr_status_file *status);
void wr_fork_child_leave(struct wr_fork *fork);

#endif
