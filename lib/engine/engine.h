/* engine: the moving parts of one process: the dispatcher, the lanes, and the configuration they follow.
 *
 * A forked child leaves its parent's engine untouched and builds its own. */
#ifndef WR_ENGINE_H
#define WR_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dispatch/dispatcher.h"
#include "journal/journal.h"
#include "lane/lane.h"
#include "engine/plan.h"
#include "handler/plugin.h"
#include "engine/recovery.h"
#include "dispatch/selfmetrics.h"

struct wr_error;

struct wr_engine {
    struct wr_dispatcher dispatcher;
    struct wr_worker_env worker_env;
    struct wr_registry *registry;
    struct wr_producers *producers;
    struct wr_plugins *plugins;
    struct wr_log *log;

    /* under the round lock */
    struct wr_lane *lanes;       /* all that there ever were, linked by next */
    struct wr_label_set *labels; /* of the configuration in force; NULL: none */
    struct wr_journal *journal;  /* NULL: none, so far */
    char *journal_place;         /* where it is, or is to be; NULL: nowhere */
    int64_t journal_retry_ns;    /* it could not be started: the next try; 0: there was none */
    struct wr_recovery recovery;
    unsigned leaving; /* lanes that were asked to stop and may have to be declared stopped */
    struct wr_selfmetrics selfmetrics;
    uint64_t flush_dropped; /* what had been dropped when the last flush came back */

    _Atomic(struct wr_config *) config; /* in force; holds a reference */
    _Atomic uint64_t generation;        /* changes with each configuration */
    _Atomic int64_t configured_ns;      /* when, by the wall clock; 0: never */
    _Atomic uint64_t labels_made;
    _Atomic bool closed, overflow_said;
    bool abandoned;             /* in a forked child: it was the parent's, and fork has seen to it */
    struct wr_engine *forsaken; /* the parent's, in a forked child: kept reachable, never touched */
};

/* An engine with nothing configured, without threads; NULL without memory. after_handler: called when a type's
 * handler was created or opened, without locks. */
struct wr_engine *wr_engine_new(struct wr_registry *registry, struct wr_producers *producers,
                                struct wr_plugins *plugins, struct wr_log *log,
                                void (*after_handler)(void *ctx, struct wr_type *type));

/* A visit to the round by a thread of the program's: with signals blocked, since a signal handler that adds
 * must not find the round lock held by the thread that it interrupts. */
struct wr_visit {
    struct wr_engine *engine;
    sigset_t signals;
};

/* false: not by deadline_ns. */
bool wr_engine_enter_by(struct wr_engine *engine, struct wr_visit *visit, int64_t deadline_ns);
void wr_engine_enter(struct wr_engine *engine, struct wr_visit *visit);
void wr_engine_leave(struct wr_visit *visit);

/* [in a visit] A lane by its name, or NULL. */
struct wr_lane *wr_engine_find_lane(struct wr_engine *engine, const char *name);

/* [in a visit] A lane by its index, in the order in which they were first configured; NULL: there are not that
 * many. */
struct wr_lane *wr_engine_lane_at(struct wr_engine *engine, size_t index);

/* The configuration in force, with a reference, and the engine's generation at that time. */
struct wr_config *wr_engine_config(struct wr_engine *engine, uint64_t *generation);

/* Makes a plan of a configuration, against the engine's lanes. */
struct wr_plan *wr_engine_plan(struct wr_engine *engine, struct wr_config *config, bool in_child,
                               struct wr_error *error);

/* [in a visit] Starts the journal, if there is to be one and there is none, and recovers what others have left
 * there. */
void wr_engine_start_journal(struct wr_engine *engine, int64_t now_ns);

/* Whether its thread runs. */
bool wr_engine_is_started(struct wr_engine *engine);

/* Has handlers open their files anew. */
void wr_engine_reopen(struct wr_engine *engine);

/* Looks a group up, and sets its gate. start: starts the dispatcher's thread when somebody listens to the
 * group. Answers whether the thread runs. */
bool wr_engine_warm(struct wr_engine *engine, struct wr_group *group, bool start);

/* Says, once, that settings.max_series is reached, if it is. */
void wr_engine_say_overflow(struct wr_engine *engine);

/* What a group's synchronous handlers have settled so far, and how long without progress one waits for them. */
struct wr_engine_progress {
    uint64_t settled;
    int64_t timeout_ns;
};
struct wr_engine_progress wr_engine_sync_progress(struct wr_engine *engine, struct wr_group *group);

/* Puts into words why one of a group's synchronous handlers answered a call with an error; false: nothing is
 * known of it. */
bool wr_engine_explain(struct wr_engine *engine, struct wr_group *group, int answer, struct wr_error *error);

/* As weir_flush, with a deadline. */
int wr_engine_flush(struct wr_engine *engine, int64_t deadline_ns, struct wr_error *error);

/* Whether the caller is the first to close the engine: he shuts it down. */
bool wr_engine_close(struct wr_engine *engine);

/* As weir_shutdown, once it was closed. */
int wr_engine_shutdown(struct wr_engine *engine, int64_t deadline_ns, struct wr_error *error);

/* The first of all lanes there ever were, linked by next; lanes are never freed. NULL: there is none. */
struct wr_lane *wr_engine_lanes(struct wr_engine *engine);

#endif
