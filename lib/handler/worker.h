/* worker: the thread of a lane. It alone calls the handler, and never with a lock held. */
#ifndef WR_WORKER_H
#define WR_WORKER_H

#include <signal.h>
#include <stdbool.h>

#include "lane/lane.h"
#include "producer/producer.h"

struct wr_lane_now;
struct wr_registry;
struct wr_type;

/* What all workers of a process use. Lives until the process ends. */
struct wr_worker_env {
    struct wr_registry *registry;
    /* Called by a worker, without locks, after each of the first calls of a handler; may be NULL. */
    void (*after_call)(struct wr_type *type);
};

/* As wr_lane_worker_claim and wr_lane_worker_start. */
bool wr_worker_claim(struct wr_lane *lane, const struct wr_worker_env *env); /* [dispatcher's round] */
bool wr_worker_start(struct wr_lane *lane);

/* [any thread, signals blocked, cancellation disabled, no locks] Delivers what an offer has claimed for the
 * calling thread. before: its signal mask otherwise. */
void wr_worker_emit_now(const struct wr_lane_now *now, const sigset_t *before);

#endif
