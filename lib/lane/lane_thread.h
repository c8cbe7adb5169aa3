/* lane_thread: the threads of a lane, its worker and its spooler, as known under the lane's lock: whether there
 * is one, and what the worker is doing. Caller holds the lock, unless stated otherwise.
 *
 *     NONE -> STARTING ------> AWAKE <-> ASLEEP <-> NOW
 *                ^             |  ^                  |
 *       RESTARTING <- ENDED <--+  +--- NOW_WOKEN <---+
 *                              +-> CALLING <-> WAITING
 *
 * A start that fails leads to FAILED, the next one from there by RETRYING to AWAKE. A spooler is AWAKE as long
 * as it runs. */
#ifndef WR_LANE_THREAD_H
#define WR_LANE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/lock.h"

struct wr_lane;

/* The order matters: see the functions below. */
enum wr_lane_thread_state {
    WR_THREAD_NONE,
    WR_THREAD_ENDED,  /* it has to be joined */
    WR_THREAD_FAILED, /* it could not be started; without a worker a lane drops its samples */

    /* the lane has the thread: */
    WR_THREAD_RETRYING,   /* as STARTING, but after FAILED: samples are still dropped */
    WR_THREAD_STARTING,   /* claimed, but not started yet; `id` is the starter's */
    WR_THREAD_RESTARTING, /* the same; `id` is a thread that has ended */
    WR_THREAD_AWAKE,      /* in the core: it decides, logs or uses the disk */
    WR_THREAD_ASLEEP,     /* idle: it found nothing to do, and nothing was requested since */
    WR_THREAD_WAITING,    /* it was inside plugin code, which waits where a fork may happen: see lane_host.h */

    /* plugin code is being executed: */
    WR_THREAD_CALLING,   /* by the worker */
    WR_THREAD_NOW,       /* by a caller, while the worker is asleep: see lane_now.h */
    WR_THREAD_NOW_WOKEN, /* the same; something was requested meanwhile, for the worker to do then */
};

/* All zeros: NONE. */
struct wr_lane_thread {
    enum wr_lane_thread_state state;
    pthread_t id;             /* unless state is NONE, FAILED or RETRYING */
    struct wr_condition work; /* it waits on it */
    int64_t busy_since_ns;    /* when the handler was called, host->wait included; 0: it is not being called */
};

/* Whether the lane has the thread, or is about to. */
static inline bool wr_lane_thread_runs(const struct wr_lane_thread *thread)
{
    return thread->state >= WR_THREAD_RETRYING;
}

/* Whether the last attempt to start it has failed. */
static inline bool wr_lane_thread_has_failed(const struct wr_lane_thread *thread)
{
    return thread->state == WR_THREAD_FAILED || thread->state == WR_THREAD_RETRYING;
}

/* Whether plugin code is being executed, by the worker or by a caller. */
static inline bool wr_lane_thread_is_inside(const struct wr_lane_thread *worker)
{
    return worker->state >= WR_THREAD_CALLING;
}

/* Whether a caller executes plugin code in the worker's place. */
static inline bool wr_lane_thread_is_now(const struct wr_lane_thread *worker)
{
    return worker->state >= WR_THREAD_NOW;
}

/* ---- Starting and ending --------------------------------------------------------------------- */

/* Returns false if the lane has the thread. Otherwise the caller has to start it. */
bool wr_lane_thread_claim(struct wr_lane_thread *thread);

/* Starts what the calling thread has claimed, without the lock; returns with the lock held. Returns false if no
 * thread can be started. */
bool wr_lane_thread_start(struct wr_lane *lane, struct wr_lane_thread *thread, void *(*run)(void *lane));

/* The thread's first step: waits until its id is stored. */
void wr_lane_thread_await_start(struct wr_lane *lane, struct wr_lane_thread *thread);

/* Its last step. */
void wr_lane_thread_end(struct wr_lane *lane, struct wr_lane_thread *thread);

/* Returns whether it has ended; then the caller has to join `id`. */
bool wr_lane_thread_take_ended(struct wr_lane_thread *thread);

/* After a shutdown that no longer waited for the lane's threads, the program may be destroying what they would
 * use: the calling one, which must be one of them, does not return then. */
void wr_lane_thread_park_if_abandoned(struct wr_lane *lane);

/* Has both threads look for something to do. */
void wr_lane_thread_wake_all(struct wr_lane *lane);

/* ---- The worker ------------------------------------------------------------------------------ */

/* Has it decide again. From here on it is not ASLEEP, even if it gets the lock later. */
static inline void wr_lane_thread_wake(struct wr_lane_thread *worker)
{
    if (worker->state == WR_THREAD_ASLEEP)
        worker->state = WR_THREAD_AWAKE;
    if (worker->state == WR_THREAD_NOW)
        worker->state = WR_THREAD_NOW_WOKEN;
    wr_condition_wake(&worker->work);
}

/* Waits for something to do, until until_ns. */
void wr_lane_thread_sleep(struct wr_lane *lane, int64_t until_ns);

/* It enters plugin code: releases the lock. It has left it: takes the lock. breach: process state that the
 * handler changed; NULL: none. */
void wr_lane_thread_enter(struct wr_lane *lane);
void wr_lane_thread_leave(struct wr_lane *lane, const char *breach);

/* Inside plugin code it begins to wait where a fork may happen, and has ended that. No effect on a caller,
 * which must not wait. */
void wr_lane_thread_begin_wait(struct wr_lane *lane);
void wr_lane_thread_end_wait(struct wr_lane_thread *worker);

/* A caller enters plugin code while the worker is ASLEEP. */
static inline void wr_lane_thread_enter_now(struct wr_lane_thread *worker, int64_t now_ns)
{
    worker->state = WR_THREAD_NOW;
    worker->busy_since_ns = now_ns;
}

/* It has left it. Returns whether the worker has to be woken. */
static inline bool wr_lane_thread_leave_now(struct wr_lane_thread *worker)
{
    bool was_woken = worker->state == WR_THREAD_NOW_WOKEN;
    worker->state = was_woken ? WR_THREAD_AWAKE : WR_THREAD_ASLEEP;
    worker->busy_since_ns = 0;
    return was_woken;
}

#endif
