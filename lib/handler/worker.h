/* worker: the thread of a lane. It alone calls the handler, and never with a lock held. */
#ifndef WR_WORKER_H
#define WR_WORKER_H

#include <stdbool.h>

#include "segment/batch.h"
#include "lane/lane.h"
#include "producer/producer.h"

struct wr_type;

/* What all workers of a process share. Lives until the process ends. */
struct wr_crew {
    struct wr_registry *registry;
    struct wr_producers *producers;
    void (*after_open)(void *ctx, struct wr_type *type); /* called by a worker, without locks; may be NULL */
    void *ctx;
};

/* Starts the lane's worker, unless it runs; false: no thread can be had, and the lane drops what comes until
 * the next try. */
bool wr_worker_start(struct wr_lane *lane, const struct wr_crew *crew);

#endif
