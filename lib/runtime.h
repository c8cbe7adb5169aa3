/* runtime: the one thing that all of weir's state hangs off, and what happens to it at first use, at fork and
 * at exit. */
#ifndef WR_RUNTIME_H
#define WR_RUNTIME_H

#include <stdatomic.h>
#include <stdbool.h>

#include "engine.h"
#include "fork.h"
#include "log.h"
#include "plugin.h"
#include "producer.h"
#include "prospect.h"
#include "registry.h"
#include "status.h"
#include "watcher.h"

struct wr_error;

/* How far this process has come. */
enum wr_readiness {
    WR_READINESS_NONE,  /* nothing configured yet */
    WR_READINESS_BEGUN, /* a thread is at it: loading plugins, maybe */
    WR_READINESS_DONE,
};

/* A page that a forked child finds wiped. */
struct wr_life {
    _Atomic uint32_t alive; /* 1: `engine` is this process's own */
};

struct wr_runtime {
    /* the same in a forked child */
    struct wr_log log;
    struct wr_registry registry;
    struct wr_producers producers;
    struct wr_plugins plugins;
    struct wr_life *life;
    struct wr_fork fork;   /* between the handlers before and after it */
    bool from_environment; /* WEIR_CONFIG, or BENCHMARK_AI, is valid, and stays in force */
    bool parent_was_ready; /* in a forked child: the parent's configuration was in force */

    /* each process's own */
    _Atomic(struct wr_engine *) engine;
    _Atomic uint32_t readiness;    /* enum wr_readiness */
    struct wr_prospect prospect;   /* while readiness is BEGUN */
    _Atomic(pthread_t) configurer; /* the thread that is at it, while readiness is BEGUN */
    struct wr_watcher watcher;
    struct wr_status status;
};

/* The runtime, made at first use, and in a forked child brought to life with an engine of its own. NULL without
 * memory. */
struct wr_runtime *wr_runtime_get(void);

/* This process's engine. */
struct wr_engine *wr_runtime_engine(struct wr_runtime *runtime);

/* Makes sure that the configuration of this process is in force: the environment's, or, in a forked child, its
 * parent's. false: another thread is at it; what is added meanwhile waits in the rings. */
bool wr_runtime_make_ready(struct wr_runtime *runtime);

/* Whether the calling thread is the one that is at it: then it is a plugin of this configuration, or a signal
 * handler, and cannot wait for it. */
bool wr_runtime_is_configurer(struct wr_runtime *runtime);

/* [producer] Another thread is at it. Where that leads to a journal, or may do so, the caller waits: what it
 * added now would not be in it. */
static inline void wr_runtime_wait_for_journal(struct wr_runtime *runtime)
{
    if (!wr_producer_is_own() && !wr_runtime_is_configurer(runtime))
        wr_prospect_wait(&runtime->prospect, &runtime->readiness, WR_READINESS_BEGUN);
}

/* [producer] Looks a group up and sets its gate; `start`: a value is coming, so weir's threads have to run if
 * somebody listens. */
void wr_runtime_warm(struct wr_runtime *runtime, struct wr_group *group, bool start);

/* Puts a configuration in force, or, with one from the environment, only checks it. Takes over the reference.
 */
int wr_runtime_configure(struct wr_runtime *runtime, struct wr_config *config, struct wr_error *error);

/* As weir_configure; a change of the configuration in force, whatever that is by then. */
int wr_runtime_route(struct wr_runtime *runtime, const char *group, const char *type, const char *options,
                     struct wr_error *error);

/* As weir_shutdown. */
int wr_runtime_shutdown(struct wr_runtime *runtime, int64_t deadline_ns, struct wr_error *error);

/* Reads the file in force again. in_background: with the environment as it was at the first time. */
int wr_runtime_reload(struct wr_runtime *runtime, bool in_background, struct wr_error *error);

#endif
