/* fork: bringing a process with running threads through fork(2).
 *
 * Before: workers are asked to stay out of their handlers' code, and the locks that a child must find whole are
 * taken; all within 50 ms. A handler that is still busy then is lost to the child. After, in the parent:
 * everything goes on. In the child: the parent's handlers are abandoned, and nothing else of its engine is ever
 * touched. */
#ifndef WR_FORK_H
#define WR_FORK_H

#include <stdbool.h>

#include "engine.h"

/* What was taken before a fork, to be given back after it. */
struct wr_fork {
    struct wr_engine *engine; /* NULL: nothing was */
    bool round, registry, producers, plugins;
};

void wr_fork_prepare(struct wr_fork *fork, struct wr_engine *engine);
void wr_fork_parent(struct wr_fork *fork);
void wr_fork_child(struct wr_fork *fork);

#endif
