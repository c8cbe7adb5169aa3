/* change: putting another configuration in force. */
#ifndef WR_COMMIT_H
#define WR_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

struct wr_plan;

/* Puts a plan in force, unless another one came in between (the generation differs): a barrier between two
 * records. Takes the plan. */
bool wr_commit(struct wr_engine *engine, struct wr_plan *plan, uint64_t generation);

/* Gives an engine that has none a router for the configuration with nothing in it. false: no memory. */
bool wr_commit_make_router(struct wr_engine *engine, struct wr_error *error);

#endif
