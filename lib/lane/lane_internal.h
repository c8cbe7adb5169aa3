/* lane_internal: struct wr_lane, and what the files of this folder use of one another. */
#ifndef WR_LANE_INTERNAL_H
#define WR_LANE_INTERNAL_H

#include <signal.h>

#include "lane/delivery.h"
#include "lane/lane.h"
#include "lane/lane_config.h"
#include "lane/lane_ledger.h"
#include "lane/lane_stats.h"
#include "lane/lane_thread.h"
#include "lane/losses.h"
#include "lane/spool_state.h"
#include "os/lock.h"
#include "os/log.h"
#include "os/deferred_log.h"
#include "os/wakeup.h"

struct wr_instance;
struct wr_label_set;
struct wr_worker_env;

/* A fork of the process, between its preparation and its end in the parent. */
enum wr_lane_fork {
    WR_LANE_FORK_NONE,
    WR_LANE_FORK_PENDING, /* the worker must not enter plugin code, and no thread may use the disk */
    WR_LANE_FORK_NOTICED, /* the same, and a thread has seen it: it sleeps until the fork is over */
};

/* How far the lane is on its way to its end. Each of these goes with each state of its threads and of the
 * delivery: a thread may be anywhere when its lane is stopped or abandoned. */
enum wr_lane_stop {
    WR_LANE_STAYS,
    WR_LANE_STOPS,     /* it delivers what there is and ends, by stop_deadline_ns, unless configured again */
    WR_LANE_SHUT,      /* the process ends, and the time is over: the spooler must return */
    WR_LANE_ABANDONED, /* the same; nothing waits for the worker or the spooler any more, which must park */
};

enum { WR_LANE_FAULTS_MOST = 10 };

struct wr_lane {
    const char *name;
    struct wr_lane *next; /* see wr_lane_next */
    struct wr_log *log;
    struct wr_wakeup *wakeup; /* sent when producers may continue; may be NULL */
    /* The round's messages: a thread that holds the round lock adds the lane's to them, to be logged when it
     * leaves the round. May be NULL. */
    struct wr_deferred_log *deferred_log;

    struct wr_lock lock;          /* for all below */
    struct wr_condition progress; /* other threads wait on it for the lane's */
    struct wr_condition ended;    /* they wait on it for the worker's end alone */
    struct wr_lane_settings settings;
    struct wr_lane_ledger ledger;
    struct wr_spool_state spool_state;
    struct wr_backpressure pressure;

    struct wr_losses losses;
    int64_t not_kept_log_ns; /* no further message about values that left the journal before this */
    _Atomic(struct wr_summer *) summer;

    /* the handler */
    struct wr_lane_handler handler;   /* instance NULL: none, or no longer; the rest is of the last one */
    struct wr_lane_handler successor; /* replaces the handler once that is closed; instance NULL: none */
    struct wr_label_set *labels;      /* of the configuration; NULL: none */
    struct wr_delivery delivery;
    /* enum weir_drop: why all further samples are dropped; WR_LANE_LIVES: they are not. Independent of `stop`:
     * only a lane that stops ends its worker, and one that has ended otherwise may get another handler. */
    int end_reason;
    const _Atomic bool *journaled; /* whether what is queued outlives the process; NULL: it does not */
    int64_t reminder_ns;           /* that the handler still fails is not logged before this */
    int64_t refusal_reminder_ns;   /* rejected samples are not logged before this */
    uint64_t lost_before;          /* samples dropped before the handler began to fail */

    /* requests */
    uint64_t flush_wanted, flushed; /* positions */
    int64_t flush_deadline_ns;
    bool reload_wanted;
    int64_t wake_at_ns; /* 0: no timer */
    enum wr_lane_stop stop;
    int64_t stop_deadline_ns; /* if it stops */
    int stop_reason;          /* enum weir_drop, of samples that are left then */

    /* the threads */
    struct wr_lane_thread worker, spooler;
    const struct wr_worker_env *worker_env;
    enum wr_lane_fork fork;

    struct wr_lane_counter counters[WR_LANE_COUNTERS]; /* the handler's own, by host->count */
    size_t counter_count;

    /* to be logged after the lock is released, by a thread that is not in a round */
    struct wr_deferred_texts messages;
    unsigned logging; /* threads that have released the lock and are logging */
};

/* ---- The lock -------------------------------------------------------------------------------- */

/* Threads of the program hold the lock with signals blocked. Otherwise a signal handler that adds a value could
 * wait for the dispatcher while the dispatcher waits for the lock held by the interrupted thread. */
void wr_lane_lock_from_program(struct wr_lane *lane, sigset_t *signals);
void wr_lane_unlock_from_program(struct wr_lane *lane, const sigset_t *signals);

/* Releases the lock, and logs the messages that were added under it. */
void wr_lane_unlock(struct wr_lane *lane);

/* ---- Caller holds the lock ------------------------------------------------------------------- */

/* Whether a fork is being prepared. The caller then leaves what it was about to do; the end of the fork wakes
 * the worker and the spooler only if one of them has asked. */
static inline bool wr_lane_is_forking(struct wr_lane *lane)
{
    if (lane->fork == WR_LANE_FORK_PENDING)
        lane->fork = WR_LANE_FORK_NOTICED;
    return lane->fork != WR_LANE_FORK_NONE;
}

static inline bool wr_lane_is_stopping(const struct wr_lane *lane)
{
    return lane->stop != WR_LANE_STAYS;
}

/* Why all further samples are dropped, enum weir_drop; WR_LANE_LIVES: they are not. */
static inline int wr_lane_ending(const struct wr_lane *lane)
{
    return wr_lane_thread_has_failed(&lane->worker) ? WEIR_DROPPED_NO_THREAD : lane->end_reason;
}

/* Adds a message, which is logged by the thread that calls wr_lane_unlock, or leaves the round. Without memory
 * it is lost. */
void wr_lane_log(struct wr_lane *lane, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Applies settings. */
void wr_lane_set(struct wr_lane *lane, const struct wr_lane_settings *settings, int64_t now_ns);

/* Drops everything that is queued, and what is in flight. */
static inline void wr_lane_drop_all(struct wr_lane *lane, enum weir_drop why)
{
    wr_lane_ledger_drop_all(&lane->ledger, why, lane->spool_state.busy);
}

/* It is configured again: it stays, unless the process ends. */
void wr_lane_stop_cancel(struct wr_lane *lane);

/* Ends the lane: drops what is left, and logs it. */
void wr_lane_declare_end(struct wr_lane *lane);

/* Fails all synchronous calls and flushes that wait, and all later ones until it is called with 0. */
void wr_lane_fail_waiters(struct wr_lane *lane, int error);

/* Bytes that back-pressure counts: while the disk takes samples, those that the handler is working on are not
 * among them. Only the handler can make room there, and it may not return. */
uint64_t wr_lane_pressing_bytes(const struct wr_lane *lane);

/* Whether the queue is so full that samples are moved to disk, if there is a spool. */
static inline bool wr_lane_is_half_full(const struct wr_lane *lane)
{
    return lane->settings.spool_limit && wr_lane_pressing_bytes(lane) >= lane->settings.queue_bytes / 2;
}

/* Whether the disk takes samples: while it does, calls wait for it rather than drop, whatever the overflow
 * policy. */
void wr_lane_set_spooling(struct wr_lane *lane, bool spooling, int64_t now_ns);

/* The handler was given samples: producers no longer wait if the rest is little. */
void wr_lane_eased(struct wr_lane *lane);

/* Samples were settled: updates the back-pressure, and wakes all that wait for progress. */
void wr_lane_made_progress(struct wr_lane *lane, int64_t now_ns);

/* Whether the handler gets all samples of a segment, without a look at each. */
static inline bool wr_lane_accepts_all(const struct wr_lane *lane, const struct wr_segment *segment)
{
    const uint32_t usual = WEIR_KINDS_DOUBLE | WEIR_KINDS_INT;
    return !segment->other_kinds && (lane->handler.kinds & usual) == usual;
}

/* Replaces the handler, which is destroyed or was never there, by the successor. */
void wr_lane_take_successor(struct wr_lane *lane);

#endif
