/* worker: the thread of a lane. It alone calls the handler, and never with a lock held. */
#ifndef WR_WORKER_H
#define WR_WORKER_H

#include <stdbool.h>

#include "lane/lane.h"
#include "producer/producer.h"

struct wr_registry;
struct wr_type;

/* What all workers of a process use. Lives until the process ends. */
struct wr_worker_env {
    struct wr_registry *registry;
    struct wr_producers *producers;
    /* Called by a worker, without locks, after a handler was opened for the first time; may be NULL. */
    void (*after_open)(void *ctx, struct wr_type *type);
    void *ctx;
};

/* Starts the lane's worker, unless it runs. Returns false if no thread can be started; the lane drops its
 * samples until the next attempt. [dispatcher's round] */
bool wr_worker_start(struct wr_lane *lane, const struct wr_worker_env *env);

#endif
