/* engine: the running parts of one process: dispatcher, lanes, journal, and the configuration in force.
 *
 * A forked child makes its own, and never touches its parent's. */
#ifndef WR_ENGINE_H
#define WR_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dispatch/dispatcher.h"
#include "journal/fronts.h"
#include "journal/journal.h"
#include "lane/lane.h"
#include "engine/plan.h"
#include "handler/plugin.h"
#include "engine/reclaim.h"
#include "engine/recovery.h"
#include "dispatch/selfmetrics.h"
#include "text/error.h"

/* How long a shutdown waits, and calls, in nanoseconds; tests set other values. */
struct wr_engine_limits {
    int64_t lock_ns; /* for the round lock, also beyond the deadline: it is held briefly, but its holder may not
                        be scheduled, and without the lock nothing can be counted */
    int64_t settle_least_ns; /* for calls in progress, also beyond the deadline */
    int64_t settle_most_ns;  /* for calls in progress, before it */
    int64_t quiet_ns;        /* before it logs for what it waits */
    int64_t logging_ns;      /* for messages that other threads are logging */
    int64_t save_ns; /* for a disk that is busy, in all lanes together: what is not on disk then is lost */
    /* a call of a group that has no synchronous handler any more, for its value to be taken */
    int64_t taking_ns;
    int64_t no_round_ns; /* a call that needs room, while there is no round */
};

struct wr_engine {
    struct wr_dispatcher dispatcher;
    struct wr_engine_limits limits;
    struct wr_worker_env worker_env;
    struct wr_registry *registry;
    struct wr_producers *producers;
    struct wr_plugins *plugins;
    struct wr_log *log;

    /* all ever made, linked by next; never freed. Changed under the round lock */
    _Atomic(struct wr_lane *) lanes;
    /* under the round lock */
    struct wr_label_set *labels;        /* of the configuration in force; NULL: none */
    struct wr_label_set *pushed_labels; /* see struct wr_plan */
    struct wr_journal *journal;         /* NULL: not started */
    char *journal_place;                /* its folder; NULL: no journal is configured */
    int64_t journal_retry_ns;           /* when to try again to start it; 0: it has not failed */
    struct wr_recovery recovery;
    struct wr_fronts fronts; /* of the sources; has a lock of its own */
    struct wr_reclaim reclaim;
    unsigned leaving; /* stopping lanes whose deadline the dispatcher checks */
    struct wr_selfmetrics selfmetrics;
    _Atomic uint64_t flush_dropped; /* values dropped until the last flush returned */

    _Atomic(struct wr_config *) config; /* in force; holds a reference */
    _Atomic uint64_t generation;        /* 0: none was committed; changes with each */
    _Atomic int64_t configured_ns;      /* wall clock of the last commit; 0: none */
    _Atomic uint64_t labels_made;
    _Atomic bool closed, overflow_logged, full_logged;
    _Atomic(pthread_t) closer; /* the thread that shuts down */
    _Atomic uint32_t ended;    /* 1: the shutdown is finished; a futex, for other threads that shut down */
    _Atomic bool journals;     /* a journal was started: it is in use until the end */
    _Atomic bool unfinished;   /* the process ends before another thread's shutdown is finished */
    _Atomic bool reported;     /* the ledger was, when there were so many refused values: */
    _Atomic uint64_t reported_refused;
    struct wr_error shutdown_error; /* its result, if it failed; written before `ended` */
    bool abandoned;             /* the parent's engine in a forked child, after fork abandoned its handlers */
    struct wr_engine *forsaken; /* in a forked child, the parent's: kept reachable, never touched */
};

/* An engine without threads and routes. NULL: out of memory. config: the empty one, which the engine holds.
 * after_handler: called without locks after a handler of a type was created or opened. */
struct wr_engine *wr_engine_new(struct wr_registry *registry, struct wr_producers *producers,
                                struct wr_plugins *plugins, struct wr_log *log, struct wr_config *config,
                                void (*after_handler)(struct wr_type *type));

/* The round lock, taken by a thread of the program, with its signals blocked: a signal handler that adds values
 * must not find the lock held by the thread that it interrupts. */
struct wr_visit {
    struct wr_engine *engine;
    sigset_t signals;
};

/* false: the deadline passed. */
bool wr_engine_enter_by(struct wr_engine *engine, struct wr_visit *visit, int64_t deadline_ns);
void wr_engine_enter(struct wr_engine *engine, struct wr_visit *visit);
void wr_engine_leave(struct wr_visit *visit);

/* Caller holds the round lock. A lane by its name, or NULL. */
struct wr_lane *wr_engine_find_lane(struct wr_engine *engine, const char *name);

/* Caller holds the round lock. A lane by its index, in the order in which they were first configured; NULL:
 * there are not that many. */
struct wr_lane *wr_engine_lane_at(struct wr_engine *engine, size_t index);

/* The configuration in force, referenced, and its generation. */
struct wr_config *wr_engine_config(struct wr_engine *engine, uint64_t *generation);

/* Where a plan is made that is to be committed to this engine in this generation. */
struct wr_plan_site wr_engine_plan_site(struct wr_engine *engine, uint64_t generation, bool in_child);

/* Caller holds the round lock. Starts the journal if one is configured and not started, and recovers what ended
 * processes left there. */
void wr_engine_start_journal(struct wr_engine *engine, int64_t now_ns);

/* Starts the dispatcher's thread if there are handlers. Returns whether it runs. */
bool wr_engine_start(struct wr_engine *engine);

/* Requests that handlers reopen their files. */
void wr_engine_reopen(struct wr_engine *engine);

/* Finds a group's route and sets its gate. start: starts the dispatcher's thread if the route has handlers.
 * Returns whether the thread runs. */
bool wr_engine_warm(struct wr_engine *engine, struct wr_group *group, bool start);

/* Logs once that settings.max_series is reached, if it is. */
void wr_engine_log_overflow(struct wr_engine *engine);

/* How many samples a group's synchronous handlers have settled, and the longest of their timeouts without
 * progress. If it has none any more: those of all handlers that calls wait for. */
struct wr_lane_progress wr_engine_sync_progress(struct wr_engine *engine, struct wr_group *group);

/* Sets error to the reason why a synchronous handler of a group returned `code`. false: no reason is known.
 */
bool wr_engine_explain(struct wr_engine *engine, struct wr_group *group, int code, struct wr_error *error);

/* As wr_dispatcher_end_series. */
void wr_engine_end_series(struct wr_engine *engine, const uint32_t *series, size_t count);

/* As weir_flush, with a deadline. */
int wr_engine_flush(struct wr_engine *engine, int64_t deadline_ns, struct wr_error *error);

/* true for the first caller, which then shuts the engine down. */
bool wr_engine_close(struct wr_engine *engine);

/* As weir_shutdown, after wr_engine_close returned true. WEIR_ERR_TIMEOUT also if the round lock could not be
 * had: what calls had added since the last round is not counted then. */
int wr_engine_shutdown(struct wr_engine *engine, int64_t deadline_ns, struct wr_error *error);

/* The shutdown is finished: wakes the threads that wait for it. error: its result; NULL: 0. */
void wr_engine_shutdown_end(struct wr_engine *engine, const struct wr_error *error);

/* After wr_engine_close returned false: waits until the other thread's shutdown is finished. Returns its
 * result, or WEIR_ERR_TIMEOUT after deadline_ns; 0 if it was finished before, or if it is the calling thread's,
 * whose log function shuts down. */
int wr_engine_shutdown_wait(struct wr_engine *engine, int64_t deadline_ns, struct wr_error *error);

/* Caller holds the round lock. Once a shutdown is finished, values of calls that it did not wait for, and that
 * published them after it, are taken from the rings, logged, and counted as dropped by their handlers. With a
 * journal they stay in the rings, and so in its files, if these are still there. */
void wr_engine_take_late(struct wr_engine *engine);

/* The process ends before another thread's shutdown is finished: logs how many values are not delivered. */
void wr_engine_report_unfinished(struct wr_engine *engine);

/* The first of all lanes ever made, linked by next; never freed. NULL: none. Needs no lock, since lanes are
 * only prepended. */
struct wr_lane *wr_engine_lanes(const struct wr_engine *engine);

#endif
