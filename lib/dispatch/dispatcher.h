/* dispatcher: takes records out of the rings and hands them to the feeds.
 *
 * One round takes everything that was published when it looked, offers it to the lanes, and sets the gates; it
 * never waits for anybody. Rounds are run by the dispatcher's thread, and by any other thread that needs one at
 * once (flush, configure, shutdown, a producer when there is no such thread), each holding the round lock. All
 * that is said to belong to [dispatcher's round] is under that lock. */
#ifndef WR_DISPATCHER_H
#define WR_DISPATCHER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/wakeup.h"
#include "os/lock.h"
#include "producer/producer.h"
#include "dispatch/drain.h"
#include "os/deferred_log.h"
#include "handler/worker.h"

struct wr_dispatcher {
    struct wr_lock round;
    _Atomic uint32_t
        visitors; /* other threads that want the round lock: the dispatcher's thread lets them go first */
    struct wr_wakeup wakeup;
    _Atomic uint32_t speaking; /* threads that have left the round and are saying some words */

    /* rings that woke up since the last round; see wr_dispatcher_wake */
    _Atomic(struct wr_producer *) woken;

    /* under the round lock */
    struct wr_drain taking;
    struct wr_producer *active[WR_PRODUCERS_MOST + 1]; /* rings that are looked at in each round */
    uint32_t active_count;
    const struct wr_worker_env *worker_env;
    struct wr_log *log;
    struct wr_deferred_log words; /* of handlers and of the journal, said when the round is left */
    /* called at the end of each round: what else has to be done at times. Lowers *next_ns. */
    void (*tend)(void *ctx, int64_t now_ns, int64_t *next_ns);
    void *ctx;

    bool stopping;          /* the thread is to end */
    pthread_t thread;       /* if it ever ran */
    _Atomic bool running;   /* it runs; written under the lock */
    int64_t start_again_ns; /* not before, after it could not be started */
    struct wr_condition ended;
};

void wr_dispatcher_init(struct wr_dispatcher *dispatcher, struct wr_registry *registry,
                        const struct wr_worker_env *env);

/* Takes and leaves the round lock, as a thread that is not the dispatcher's. wr_dispatcher_visit_by: false, not
 * by deadline_ns. */
void wr_dispatcher_visit(struct wr_dispatcher *dispatcher);
bool wr_dispatcher_visit_by(struct wr_dispatcher *dispatcher, int64_t deadline_ns);
void wr_dispatcher_leave(struct wr_dispatcher *dispatcher);

/* [dispatcher's round] One round. Answers how many samples it took; *next_ns: when the next one is due if
 * nothing happens. */
uint64_t wr_dispatcher_round(struct wr_dispatcher *dispatcher, int64_t *next_ns);

/* [dispatcher's round] Takes everything published so far by the present router, and puts another one in its
 * place. */
void wr_dispatcher_switch(struct wr_dispatcher *dispatcher, struct wr_router *router);

/* [dispatcher's round] Adds samples of weir's own, which are in no ring and not in the ledger of the process.
 */
void wr_dispatcher_add(struct wr_dispatcher *dispatcher, const weir_sample *samples, uint32_t count);

/* [dispatcher's round] Starts the thread unless it runs; false: it cannot be had at present. */
bool wr_dispatcher_start(struct wr_dispatcher *dispatcher);

/* Asks the thread to end, and waits until it has, or deadline_ns. */
void wr_dispatcher_stop(struct wr_dispatcher *dispatcher, int64_t deadline_ns);

/* Waits until what others are saying of the rounds that were is said, or deadline_ns. */
void wr_dispatcher_wait_said(struct wr_dispatcher *dispatcher, int64_t deadline_ns);

/* [producer] The producer's ring was parked and has something now. Safe in signal handlers. */
void wr_dispatcher_wake(struct wr_dispatcher *dispatcher, struct wr_producer *producer);

/* [producer] The ring fills up, or is full: no time to nap. Safe in signal handlers. */
void wr_dispatcher_hurry(struct wr_dispatcher *dispatcher);

/* [producer] Moves the calling thread's ring into the journal, as far as there is one. weir's own threads may
 * be in the round already, and do without. */
void wr_dispatcher_renew(struct wr_dispatcher *dispatcher, struct wr_producer *producer);

/* [producer] Waits until the ring has room for `count` slots, or timeout_ns is over; may return early. */
void wr_dispatcher_wait_room(struct wr_dispatcher *dispatcher, struct wr_producer *producer, uint64_t count,
                             int64_t timeout_ns);

#endif
