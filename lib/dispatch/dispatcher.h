/* dispatcher: moves samples from the rings to the lanes, in rounds.
 *
 * A round takes everything that was published when it began, offers it to the lanes and sets the gates; it
 * never waits. Rounds are run by the dispatcher's thread, and by any other thread that needs one at once
 * (flush, configure, shutdown, a producer if there is no such thread). "[dispatcher's round]" means that the
 * caller holds the round lock. */
#ifndef WR_DISPATCHER_H
#define WR_DISPATCHER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/wakeup.h"
#include "os/lock.h"
#include "producer/producer.h"
#include "dispatch/drain.h"
#include "dispatch/room.h"
#include "os/deferred_log.h"
#include "handler/worker.h"

enum { WR_DISPATCHER_CLAIMS = 16 };

struct wr_dispatcher {
    struct wr_lock round;
    _Atomic uint32_t visitors; /* other threads that wait for the round lock */
    _Atomic uint32_t rounds;   /* how many there were; wraps */
    _Atomic uint32_t visits;   /* how many of them have had it, or have given up; wraps */
    _Atomic uint32_t due;      /* 1: the dispatcher's thread is next; a futex */
    struct wr_wakeup wakeup;
    _Atomic uint32_t logging; /* threads that have left the round and are logging its messages */

    /* rings that were woken since the last round; see wr_dispatcher_wake */
    _Atomic(struct wr_producer *) woken;

    /* under the round lock */
    struct wr_drain drain;
    struct wr_producers *producers;                    /* whose cells are read; NULL: none */
    struct wr_producer *active[WR_PRODUCERS_MOST + 1]; /* rings that each round reads */
    uint32_t active_count;
    const struct wr_worker_env *worker_env;
    struct wr_room_waiter *room_waiters; /* linked by next */
    struct wr_log *log;
    /* messages of handlers and of the journal, logged when the round is left */
    struct wr_deferred_log deferred_log;
    /* called at the end of each round, for periodic work; lowers *next_ns to its next time */
    void (*tend)(void *ctx, int64_t now_ns, int64_t *next_ns);
    void *ctx;

    bool stopping;          /* the thread has to end */
    pthread_t thread;       /* if has_thread; set by itself */
    bool has_thread;        /* it has begun, and nobody has joined it */
    _Atomic bool running;   /* the thread runs, or is starting; written under the round lock */
    bool starting;          /* who leaves the round starts it */
    int64_t start_again_ns; /* no attempt to start it before this */
    struct wr_condition ended;

    /* lanes whose workers are started by the thread that leaves the round; see lane_worker.h */
    struct wr_lane *claimed[WR_DISPATCHER_CLAIMS];
    uint32_t claimed_count;
};

void wr_dispatcher_init(struct wr_dispatcher *dispatcher, struct wr_registry *registry,
                        const struct wr_worker_env *env);

/* Takes and releases the round lock, for threads other than the dispatcher's. wr_dispatcher_visit_by returns
 * false if it is not free by deadline_ns. */
void wr_dispatcher_visit(struct wr_dispatcher *dispatcher);
bool wr_dispatcher_visit_by(struct wr_dispatcher *dispatcher, int64_t deadline_ns);
void wr_dispatcher_leave(struct wr_dispatcher *dispatcher);

/* [dispatcher's round] Runs one round, also of what threads have summed in cells, which the dispatcher's thread
 * itself takes only when an interval ends. Returns how many samples it took. *next_ns: when the next one is due
 * at the latest. */
uint64_t wr_dispatcher_round(struct wr_dispatcher *dispatcher, int64_t *next_ns);

/* [producer, waiting, signals blocked] Takes the event of a synchronous call, [from, tail) of the calling
 * thread's ring, in place of the dispatcher's thread. now: gets what the calling thread is to deliver itself.
 * Returns false, and has done nothing, if the round lock is not free, or if there is something before the
 * event. */
bool wr_dispatcher_take_now(struct wr_dispatcher *dispatcher, struct wr_producer *producer, uint64_t from,
                            uint64_t tail, struct wr_lane_now *now);

/* [dispatcher's round] Takes what threads have summed in cells, so that the lanes' statistics have it. */
void wr_dispatcher_take_cells(struct wr_dispatcher *dispatcher);

/* [dispatcher's round] Ends the intervals of all lanes that take summaries, and queues these. also_full: also
 * of lanes with a full queue. Returns whether all were ended. */
bool wr_dispatcher_end_intervals(struct wr_dispatcher *dispatcher, bool also_full);

/* [producer, waiting, signals blocked] Runs a round in place of the dispatcher's thread, which may be stuck
 * where it starts a thread or logs. Calls no malloc and starts nothing: without the periodic work of `tend`.
 * Returns false if the round lock is not free by deadline_ns. */
bool wr_dispatcher_help(struct wr_dispatcher *dispatcher, int64_t deadline_ns);

/* [dispatcher's round] Takes everything published so far by the present router, and replaces the router.
 * Returns the former one, sealed, which the caller frees after the round; may be NULL. */
struct wr_router *wr_dispatcher_switch(struct wr_dispatcher *dispatcher, struct wr_router *router);

/* [dispatcher's round] Ends series, after what was published so far: what comes later begins them anew. Those
 * that are shared beyond a limit stay, since others may still add to them. */
void wr_dispatcher_end_series(struct wr_dispatcher *dispatcher, const uint32_t *series, size_t count);

/* [dispatcher's round] Adds a sample of weir's own metrics. It is in no ring, and not in the process's ledger.
 */
void wr_dispatcher_add(struct wr_dispatcher *dispatcher, const weir_sample *sample);

/* [dispatcher's round] Starts the thread unless it runs, when the caller leaves the round: starting it
 * allocates. Returns false if it cannot be started now. */
bool wr_dispatcher_start(struct wr_dispatcher *dispatcher);

/* Ends the thread, which runs no round from now on, unless the round lock is not free by deadline_ns. */
void wr_dispatcher_stop(struct wr_dispatcher *dispatcher, int64_t deadline_ns);

/* Waits until the thread has ended, or deadline_ns. */
void wr_dispatcher_join(struct wr_dispatcher *dispatcher, int64_t deadline_ns);

/* Waits until other threads have logged the messages of their rounds, or deadline_ns. */
void wr_dispatcher_wait_logged(struct wr_dispatcher *dispatcher, int64_t deadline_ns);

/* [producer] Something was published in a ring that was parked. Safe in signal handlers. */
void wr_dispatcher_wake(struct wr_dispatcher *dispatcher, struct wr_producer *producer);

/* [producer] The ring is filling up: ends the nap between rounds. Safe in signal handlers. */
void wr_dispatcher_hurry(struct wr_dispatcher *dispatcher);

/* [producer] Moves the calling thread's ring and cells into the journal, if there is one. Does nothing on
 * weir's own threads, which may hold the round lock already. */
void wr_dispatcher_renew(struct wr_dispatcher *dispatcher, struct wr_producer *producer);

/* [producer, in a call] See wr_drain_make_cells. */
void wr_dispatcher_make_cells(struct wr_dispatcher *dispatcher, struct wr_producer *producer);

/* [producer] Waits until the ring has room for `count` slots, at most timeout_ns; may return early. */
void wr_dispatcher_wait_room(struct wr_dispatcher *dispatcher, struct wr_producer *producer, uint64_t count,
                             int64_t timeout_ns);

#endif
