/* runtime: the root of all mutable state of the library, and its initialisation at first use, after fork, and
 * at exit. */
#ifndef WR_RUNTIME_H
#define WR_RUNTIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "engine/engine.h"
#include "runtime/collectors.h"
#include "runtime/fork.h"
#include "os/log.h"
#include "handler/plugin.h"
#include "producer/producer.h"
#include "registry/registry.h"
#include "status/status.h"
#include "runtime/watcher.h"

struct wr_error;

/* Whether this process is configured. */
enum wr_readiness {
    WR_READINESS_NONE,  /* nothing configured yet */
    WR_READINESS_BEGUN, /* a thread is configuring, which may load plugins */
    WR_READINESS_DONE,
};

/* Whether the first configuration has a journal. */
enum wr_journal_expectation { WR_JOURNAL_UNKNOWN, WR_JOURNAL_NONE, WR_JOURNAL_EXPECTED };

struct wr_config;

/* What sources do as the configuration and the process change: lib/source, which is above this folder. */
struct wr_source_hooks {
    /* [configuring] Makes a configuration's sources. Returns NULL with the error set. */
    void *(*plan)(struct wr_source_hooks *hooks, const struct wr_config *config, struct wr_error *error);
    /* [configuring, no locks] The configuration is in force, since that generation. Frees the plan. */
    void (*commit)(struct wr_source_hooks *hooks, void *plan, uint64_t generation);
    void (*discard)(void *plan);
    /* [configuring, no locks] The program reloads. */
    void (*reload)(struct wr_source_hooks *hooks);
    /* Before the process's values are delivered for the last time. Returns false after the deadline. */
    bool (*stop)(struct wr_source_hooks *hooks, int64_t deadline_ns);
    /* [fork, child] Closes descriptors. */
    void (*abandon)(struct wr_source_hooks *hooks);
    /* As wr_selfmetrics_sources.read. */
    bool (*read_counts)(struct wr_source_hooks *hooks, size_t index, struct wr_selfmetrics_source *source);
    /* As wr_snapshot_read_source. */
    bool (*read_status)(struct wr_source_hooks *hooks, size_t index, struct wr_status_source *source);
    /* As wr_snapshot_read_senders. */
    size_t (*read_senders)(struct wr_source_hooks *hooks, size_t index, struct wr_status_sender *senders,
                           size_t room);
};

/* A page that is wiped in a forked child. */
struct wr_life {
    _Atomic uint32_t alive;           /* see runtime.c; 0: `engine` is the parent's */
    const struct wr_producer *forker; /* in a child: of the thread that forked; NULL: not known */
    pid_t process;                    /* in a child: itself, once it has given up what is its parent's */
};

struct wr_runtime {
    /* kept in a forked child */
    struct wr_log log;
    struct wr_registry registry;
    struct wr_producers producers;
    struct wr_plugins plugins;
    struct wr_life *life;
    struct wr_fork fork;     /* between the fork handlers before and after it */
    struct wr_config *empty; /* what an engine begins with; read from texts, which no child has to repeat */
    /* why the environment's configuration is not used; code 0: it is, or there is none. Written before
     * readiness is DONE. */
    struct wr_error first_error;
    bool from_environment; /* WEIR_CONFIG or BENCHMARK_AI is valid, and takes precedence */
    struct wr_config *tee; /* of WEIR_TEE, held; NULL: none. Set before the first configuration */
    bool has_tee_read;     /* WEIR_TEE was read: once, also for forked children */
    /* in a forked child: the engine of its nearest ancestor that was configured; NULL: none was */
    const struct wr_engine *ancestor;
    _Atomic bool tee_logged; /* that it does not go with the program's configuration */
    _Atomic bool ends_early; /* exit has to shut down before all exit handlers, see runtime.c */
    _Atomic bool exit_ends;  /* the shutdown is that of exit, and not the program's own */

    /* separate in each process */
    _Atomic(struct wr_engine *) engine;
    _Atomic uint32_t readiness;    /* enum wr_readiness */
    _Atomic uint32_t journal;      /* enum wr_journal_expectation, while readiness is BEGUN */
    _Atomic(pthread_t) configurer; /* the configuring thread, while readiness is BEGUN */
    struct wr_watcher watcher;
    struct wr_collectors collectors;
    struct wr_status status;
    _Atomic(struct wr_source_hooks *) source_hooks; /* NULL: sources were not started */
};

/* Returns the runtime, which is created at first use; a forked child gets its own engine at its first use. NULL
 * if out of memory. */
struct wr_runtime *wr_runtime_get(void);

/* Returns the runtime without creating anything; NULL if it does not exist yet. In a forked child that has not
 * used weir, its engine is the parent's. Async-signal-safe. */
struct wr_runtime *wr_runtime_find(void);

/* Returns this process's engine. */
struct wr_engine *wr_runtime_engine(struct wr_runtime *runtime);

/* As weir_shutdown. */
int wr_runtime_shutdown(struct wr_runtime *runtime, int64_t deadline_ns, struct wr_error *error);

#endif
