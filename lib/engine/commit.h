/* commit: plan -> in force: swaps an engine's configuration, routes and handlers for those of a plan. */
#ifndef WR_COMMIT_H
#define WR_COMMIT_H

#include <stdbool.h>

#include "engine/engine.h"

struct wr_plan;

/* Applies a plan, and frees it in any case. What was added before is delivered by the old routes, what is added
 * later by the new ones. false: nothing has changed, as the engine is shutting down, another plan was committed
 * since this one was begun (the generation differs), a handler that it keeps has ended, or out of memory. */
bool wr_commit(struct wr_engine *engine, struct wr_plan *plan);

#endif
