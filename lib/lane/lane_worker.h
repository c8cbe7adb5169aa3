/* lane_worker: the lane as its worker thread uses it.
 *
 *     wr_lane_worker_next -> the handler is called, without locks -> wr_lane_worker_finish -> ...
 *
 * Everything else that a worker does (waiting, and moving samples to and from the spool) happens inside
 * wr_lane_worker_next. What to do next is decided in lane_next.c, what an outcome means in outcome.c. */
#ifndef WR_LANE_WORKER_H
#define WR_LANE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

#include "lane/lane.h"
#include "segment/queue.h"

struct wr_instance;
struct wr_label_set;
struct wr_registry;
struct wr_worker_env;

/* A thread is started in two steps, because that allocates: under the round lock it is claimed, and started
 * after that was released. In between the lane counts as having a worker.
 *
 * wr_lane_worker_claim returns false if it has one. env is kept for the worker. [dispatcher's round] */
bool wr_lane_worker_claim(struct wr_lane *lane, struct wr_registry *registry, const struct wr_worker_env *env);

/* Starts a thread that executes run(lane); by the thread that has claimed it, without locks. Returns false if
 * none can be started; the lane drops its samples until the next attempt. */
bool wr_lane_worker_start(struct wr_lane *lane, void *(*run)(void *lane));

/* ---- Thread: worker -------------------------------------------------------------------------- */

const struct wr_worker_env *wr_lane_worker_env(const struct wr_lane *lane);

enum wr_lane_call_kind {
    WR_LANE_CALL_OPEN,
    WR_LANE_CALL_EMIT,
    WR_LANE_CALL_FLUSH,
    WR_LANE_CALL_WAKE,
    WR_LANE_CALL_CLOSE,
    WR_LANE_CALL_DESTROY, /* the instance is closed; it is the worker's, and no longer the lane's */
};

/* A call that the worker has to make. */
struct wr_lane_call {
    enum wr_lane_call_kind kind;
    struct wr_instance *instance; /* NULL with DESTROY if there is none */
    struct wr_range range;        /* EMIT: its segment stays until the call is finished */
    struct wr_label_set *labels;  /* EMIT: of the samples, with a reference that the worker drops; NULL: none */
    int64_t deadline_ns;          /* FLUSH: monotonic; WR_NEVER: none */
    uint64_t flush_position;      /* FLUSH */
    int why;                      /* WAKE: enum weir_wake */
};

/* Waits until the handler has to be called. From here to wr_lane_worker_finish or wr_lane_worker_replace the
 * lane counts as busy and, unless the handler waits in the core, as being inside plugin code. */
void wr_lane_worker_next(struct wr_lane *lane, struct wr_lane_call *call);

/* How many of a batch's first samples the format left out. */
struct wr_lane_omissions {
    uint32_t (*count)(const void *ctx, uint32_t samples);
    const void *ctx;
};

/* What `done` is before a batch is delivered: more than any batch has, also if something is added to it. */
#define WR_DONE_BY_CODE UINT32_C(0x80000000)

/* An outcome as it is before a call. done: WR_DONE_BY_CODE if the call delivers, else 0. */
void wr_lane_worker_init_outcome(weir_outcome *outcome, uint32_t done);

/* After a call that delivers `count` samples: where the handler has not set `done`, the code decides. */
void wr_lane_worker_set_done(weir_outcome *outcome, uint32_t count);

/* The call has returned. outcome: of all kinds but CLOSE. omissions: of EMIT; may be NULL. breach: process
 * state that the handler changed; NULL: none. */
void wr_lane_worker_finish(struct wr_lane *lane, const struct wr_lane_call *call, weir_outcome *outcome,
                           const struct wr_lane_omissions *omissions, const char *breach);

/* The same after DESTROY. Returns the successor, which is the lane's handler now; NULL: there is none, the lane
 * counts the worker as ended, and the thread must return. */
struct wr_instance *wr_lane_worker_replace(struct wr_lane *lane, const char *breach);

#endif
