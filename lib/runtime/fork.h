/* fork: bringing a process with running threads through fork(2).
 *
 * Before: workers are asked to stay out of their handlers' code, and the locks that a child must find whole are
 * taken; all within 50 ms. A handler that is still busy then is lost to the child. After, in the parent:
 * everything goes on. In the child: the parent's handlers are abandoned, and nothing else of its engine is ever
 * touched. */
#ifndef WR_FORK_H
#define WR_FORK_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "engine/engine.h"
#include "os/lock.h"

/* What was taken before a fork, to be given back after it. Several threads may fork at once: the gate lets one
 * in, and one that cannot wait any longer forks without having taken anything. */
struct wr_fork {
    struct wr_lock gate;
    _Atomic bool taken;       /* by the thread `owner` */
    _Atomic(pthread_t) owner; /* written with the gate held */
    bool round, registry, producers, plugins, status;
    sigset_t signals; /* the owner's */
};

struct wr_status_file;

void wr_fork_prepare(struct wr_fork *fork, struct wr_engine *engine, struct wr_status_file *status);
void wr_fork_parent(struct wr_fork *fork, struct wr_engine *engine, struct wr_status_file *status);
void wr_fork_child(struct wr_fork *fork, struct wr_engine *engine, struct wr_status_file *status);

#endif
