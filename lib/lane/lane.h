/* lane: the core's side of a handler: a bounded queue, retry and back-pressure state, and the ledger. Users
 * hear "handler".
 *
 * The dispatcher offers, the lane's worker takes and settles, programs flush; each under the lane's lock, and
 * none of it calls foreign code. What the worker does next is decided in step.h, what a handler's answer means
 * in outcome.h. Here is no thread and no clock: time comes in as an argument, so tests drive a lane by hand.
 *
 * A lane belongs to its handler's name and lives until the process ends: the name's counters go on when the
 * handler is replaced or comes back. At any time, under the lock:
 *
 *     offered + recovered = delivered + dropped[...] + queue.samples + flight + spool_state.moving +
 * spool_state.samples + left
 */
#ifndef WR_LANE_H
#define WR_LANE_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "os/wakeup.h"
#include "os/lock.h"
#include "os/log.h"
#include "lane/backpressure.h"
#include "segment/queue.h"
#include "lane/backoff.h"
#include "lane/spool_state.h"
#include "producer/ticket.h"
#include "lane/sync_waiters.h"
#include "os/deferred_log.h"

struct wr_crew;
struct wr_error;
struct wr_instance;
struct wr_label_set;

/* The common options, as numbers. */
struct wr_lane_settings {
    uint64_t queue_bytes;
    enum wr_overflow overflow;
    int64_t block_timeout_ns;
    uint32_t batch;
    uint64_t batch_bytes;
    int64_t linger_ns;
    int64_t retry_min_ns, retry_max_ns;
    bool sync;
    uint64_t spool_limit; /* bytes; 0: it has no spool */
};

/* What the handler is working on. */
struct wr_flight {
    struct wr_range range; /* segment NULL: nothing */
    bool lent;             /* from WR_LANE_NEXT_EMIT to its outcome: the handler may be reading it */
    bool stashed;          /* read from disk, where it stays until it is settled */
    bool disowned; /* settled already, since the handler did not answer in time: its answer will not count */
};

/* What the handler is doing, as its worker sees it. */
enum wr_lane_worker { WR_WORKER_NONE, WR_WORKER_RUNNING, WR_WORKER_ENDED };

enum { WR_LANE_LIVES = -1, WR_LANE_FAULTS_MOST = 10, WR_LANE_COUNTERS = 32 };

struct wr_lane {
    const char *name;
    struct wr_lane *next; /* of all lanes of the runtime */
    struct wr_log *log;
    struct wr_wakeup *wakeup; /* rung when producers may go on; NULL in tests */
    struct wr_deferred_log
        *words; /* the round's: a lane that is left inside it speaks when that is left; NULL in tests */

    struct wr_lock lock;          /* for all below */
    struct wr_condition work;     /* the worker sleeps on it */
    struct wr_condition progress; /* who waits for the worker sleeps on it */
    struct wr_lane_settings settings;
    struct wr_queue queue;
    struct wr_flight flight;
    struct wr_spool_state spool_state;
    struct wr_backpressure pressure;

    uint64_t offered, recovered, delivered, dropped[WEIR_DROPPED_MAX], retries, faults;
    uint64_t position; /* of the next sample: so many were offered, or came from the journal */
    uint64_t left;     /* in the journal, when the lane came to its end */

    /* the handler */
    struct wr_instance *instance;  /* NULL: none (any more) */
    struct wr_instance *successor; /* takes over as soon as the instance is closed */
    struct wr_label_set *labels;   /* of the configuration; NULL: none */
    uint32_t kinds;                /* WEIR_KINDS_*: those that the handler takes */
    bool has_flush;
    bool open, must_reopen, needs_flush;
    int ending; /* enum weir_drop: why everything that comes is dropped; WR_LANE_LIVES */

    /* trouble */
    struct wr_backoff retry;
    int64_t retry_at_ns; /* no try before this; 0: at once */
    bool failing;
    int64_t failing_since_ns, reminder_ns;
    int64_t refusal_reminder_ns; /* no word on refused samples before this */
    uint64_t lost_before;        /* dropped when the failing began */
    unsigned faults_in_a_row;
    const char *breach; /* what the handler changed that is not its own, not counted yet; NULL: nothing */
    char reason[sizeof((weir_outcome *)0)->reason];
    int64_t reason_ns;   /* since when it is the last word; 0: there was none */
    int explained;       /* the error that `reason` explains, enum weir_error; 0: none */
    int64_t patience_ns; /* how long a try may take on purpose */

    /* requests */
    uint64_t flush_wanted, flushed; /* sequences */
    int64_t flush_deadline_ns;
    bool reload_wanted;
    int64_t wake_at_ns; /* 0: no timer */
    bool stopping;      /* come to an end, by stop_deadline_ns */
    int64_t stop_deadline_ns;
    int stop_reason; /* enum weir_drop, for what is left then */

    struct wr_sync_waiters waiting;

    /* the thread */
    enum wr_lane_worker worker;
    pthread_t thread;           /* unless worker is NONE */
    const struct wr_crew *crew; /* what the worker works with */
    bool no_thread;             /* it could not be started */
    bool in_callback;           /* it is inside the handler's code */
    int64_t
        busy_since_ns; /* since when the handler was called, also while that waits in the core; 0: it is not */
    bool held;         /* a fork is coming: it must not go in */
    bool abandoned;    /* the process ends without it */
    bool fork_unsafe;  /* [child] it was inside when the parent forked */

    struct wr_lane_counter { /* the handler's own, by host->count */
        const char *name;    /* NULL: free */
        uint64_t value;
        char name_text[48];
    } counters[WR_LANE_COUNTERS];

    /* to be said when the lock is left */
    struct wr_deferred_slots remarks;
    unsigned speaking; /* threads that have left the lock and are saying some */
};

/* name is copied; NULL without memory. Once in use, a lane is never freed. */
struct wr_lane *wr_lane_new(const char *name, struct wr_log *log, struct wr_wakeup *wakeup,
                            struct wr_deferred_log *words);

/* Frees a lane that was never offered anything and has no handler. May be NULL. */
void wr_lane_free_unused(struct wr_lane *lane);

/* [under the lock] Puts settings in force. */
void wr_lane_set(struct wr_lane *lane, const struct wr_lane_settings *settings, int64_t now_ns);

/* ---- [dispatcher] ---------------------------------------------------------------------------- */

/* What is offered: samples of whole events in a segment. */
struct wr_offer {
    struct wr_segment *segment;
    uint32_t first, count;
    uint32_t slot;           /* the lane's, in the segment's file */
    bool no_wait;            /* some of them are flagged WEIR's own: see WR_RING_NO_WAIT */
    struct wr_ticket ticket; /* of a call that waits for the last of them */
};

/* Offers samples: they are queued, or dropped and counted. Wakes the worker when it has a reason to look.
 * Answers whether producers have to wait for this lane. */
bool wr_lane_offer(struct wr_lane *lane, const struct wr_offer *offer, int64_t now_ns);

/* Counts samples that could not even be put into a segment. */
void wr_lane_refuse(struct wr_lane *lane, uint64_t count, enum weir_drop why);

/* Notices that block_timeout or a deadline for stopping is over. Lowers *next_ns to when it wants to be asked
 * again. Answers whether producers have to wait for this lane. */
bool wr_lane_check(struct wr_lane *lane, int64_t now_ns, int64_t *next_ns);

/* ---- [any thread] ---------------------------------------------------------------------------- */

/* Threads of the program's hold the lock with signals blocked. Otherwise a signal handler that adds could come
 * to wait for the dispatcher, which may be waiting for the lock that the interrupted thread holds. */
void wr_lane_enter_from_outside(struct wr_lane *lane, sigset_t *signals);
void wr_lane_leave_to_outside(struct wr_lane *lane, const sigset_t *signals);

/* Puts into words why calls that wait for the lane are answered with an error. false: it was not the handler's
 * last word. */
bool wr_lane_explain(struct wr_lane *lane, int answer, struct wr_error *error);

/* ---- [under the lock] for step and outcome --------------------------------------------------- */

/* What is in flight, unless it is settled or on disk. */
const struct wr_range *wr_lane_flying(const struct wr_lane *lane);

/* Drops everything that is queued, and what is in flight. */
void wr_lane_drop_all(struct wr_lane *lane, enum weir_drop why);

/* Drops what is left when the time to stop is over, and says so. */
void wr_lane_declare_end(struct wr_lane *lane);

/* Counts `count` samples as dropped. */
void wr_lane_count_drop(struct wr_lane *lane, enum weir_drop why, uint64_t count);

/* Answers the calls that wait for samples before a position. */
void wr_lane_answer(struct wr_lane *lane, uint64_t sequence, int answer);

/* The position of the oldest sample that is not settled; and of the oldest that is not on disk either. */
uint64_t wr_lane_front(const struct wr_lane *lane);
uint64_t wr_lane_front_in_memory(const struct wr_lane *lane);

/* Samples and bytes that are not settled, and not on disk. */
uint64_t wr_lane_queued(const struct wr_lane *lane);
uint64_t wr_lane_queued_bytes(const struct wr_lane *lane);

/* Nobody waits any longer: all calls that wait, and flushes, come back with an error, and so do those to come
 * until it is taken back with 0. */
void wr_lane_tell(struct wr_lane *lane, int error);

/* Tells pressure and everybody who waits that samples were settled. */
void wr_lane_moved(struct wr_lane *lane, int64_t now_ns);

/* Prepares a message, said by whoever leaves the lock with wr_lane_leave. */
void wr_lane_say(struct wr_lane *lane, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Leaves the lock, and says what there is to say. */
void wr_lane_leave(struct wr_lane *lane);

#endif
