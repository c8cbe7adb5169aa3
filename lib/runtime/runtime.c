#include "runtime/runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/clock.h"
#include "runtime/intake.h"
#include "text/common.h"
#include "status/report.h"
#include "os/signals.h"

/* All state of weir hangs off this: a pointer to the runtime; 0 before there is one; an odd number while
 * process number / 2 makes it. */
static _Atomic uintptr_t the_runtime;

enum { EXITS_MOST = 32, STATUS_PATIENCE_MS = 250 };

static bool is_being_made(uintptr_t word)
{
    return word & 1;
}

/* NULL: there is none yet. */
static struct wr_runtime *find_runtime(void)
{
    /* acquire: pairs with the store in make_runtime */
    uintptr_t word = atomic_load_explicit(&the_runtime, memory_order_acquire);
    return is_being_made(word) ? NULL : (struct wr_runtime *)word;
}

/* ---- Exit ------------------------------------------------------------------------------------ */

int wr_runtime_shutdown(struct wr_runtime *runtime, int64_t deadline_ns, struct wr_error *error)
{
    struct wr_engine *engine = atomic_load(&runtime->engine);
    if (!wr_engine_close(engine))
        return 0;
    int result = wr_engine_shutdown(engine, deadline_ns, error);
    wr_report_say(engine);
    wr_status_stop(&runtime->status, wr_clock_monotonic_ns() + STATUS_PATIENCE_MS * WR_NS_PER_MS);
    return result;
}

static void at_exit(void)
{
    struct wr_error error;
    struct wr_runtime *runtime = find_runtime();
    /* a child that has added nothing since its fork has nothing to deliver; a thread of weir's own cannot wait
     * for itself */
    if (!runtime || !atomic_load(&runtime->life->alive) || wr_producer_is_own())
        return;
    const struct wr_config *config = atomic_load(&atomic_load(&runtime->engine)->config);
    wr_runtime_shutdown(runtime, wr_clock_monotonic_ns() + config->settings.shutdown_timeout_ns, &error);
}

/* Exit handlers run in the reverse order of their registration. Libraries that handlers use register theirs at
 * their own first use, so ours has to be registered again after that, lest it finds them gone. Each
 * registration takes memory for good: after so many of a type its libraries have surely come to life. */
static void register_exit(void *ctx, struct wr_type *type)
{
    (void)ctx;
    if (atomic_fetch_add(&type->exits, 1) < EXITS_MOST)
        atexit(at_exit);
}

/* ---- Fork ------------------------------------------------------------------------------------ */

static void before_fork(void)
{
    struct wr_runtime *runtime = find_runtime();
    if (runtime && atomic_load(&runtime->life->alive))
        wr_fork_prepare(&runtime->fork, atomic_load(&runtime->engine), &runtime->status.file);
}

static void after_fork_in_parent(void)
{
    struct wr_runtime *runtime = find_runtime();
    if (runtime && atomic_load(&runtime->life->alive))
        wr_fork_parent(&runtime->fork, atomic_load(&runtime->engine), &runtime->status.file);
}

static void after_fork_in_child(void)
{
    struct wr_runtime *runtime = find_runtime();
    if (!runtime)
        return;
    atomic_store(&runtime->life->alive, 0); /* where the kernel has not wiped it */
    wr_fork_child(&runtime->fork, atomic_load(&runtime->engine), &runtime->status.file);
}

/* ---- First use ------------------------------------------------------------------------------- */

static struct wr_life *map_life(void)
{
    void *memory =
        mmap(NULL, sizeof(struct wr_life), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, sizeof(struct wr_life), MADV_WIPEONFORK);
    return memory;
}

static void free_runtime(struct wr_runtime *runtime)
{
    if (runtime->life)
        munmap(runtime->life, sizeof(struct wr_life));
    free((char *)runtime->plugins.folders);
    free(runtime);
}

static void read_environment(struct wr_runtime *runtime)
{
    const char *level = secure_getenv("WEIR_LOG");
    if (!wr_log_init(&runtime->log, level))
        wr_log_say(&runtime->log, WEIR_LOG_ERROR,
                   "WEIR_LOG: \"%.40s\" is not a level; allowed: off, error, warning, info, debug", level);
    const char *folders = secure_getenv("WEIR_PLUGIN_PATH");
    runtime->plugins.folders = folders ? strdup(folders) : NULL;
}

/* Threads of weir's own run code that must never be unloaded. The shared library is linked for that (-z
 * nodelete); a static copy inside a library that a program may dlclose has to see to it itself. */
static void pin(void)
{
    Dl_info info;
    if (dladdr(&the_runtime, &info) && info.dli_fname)
        dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static bool set_up(struct wr_runtime *runtime)
{
    pin();
    runtime->life = map_life();
    if (!runtime->life || !wr_registry_init(&runtime->registry) || !wr_producers_init(&runtime->producers))
        return false;
    runtime->producers.wake_reader = wr_intake_wake_dispatcher;
    read_environment(runtime);
    struct wr_engine *engine =
        wr_engine_new(&runtime->registry, &runtime->producers, &runtime->plugins, &runtime->log, register_exit);
    if (!engine)
        return false;
    atomic_store(&runtime->engine, engine);
    atomic_store(&runtime->life->alive, 1);
    if (wr_log_wants(&runtime->log, WEIR_LOG_INFO))
        atexit(at_exit); /* there is something to say also where no handler ever was */
    return pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

static struct wr_runtime *make_runtime(void)
{
    struct wr_runtime *runtime = calloc(1, sizeof *runtime);
    if (runtime && !set_up(runtime)) {
        free_runtime(runtime);
        runtime = NULL;
    }
    atomic_store(&the_runtime, (uintptr_t)runtime);
    return runtime;
}

/* Makes the runtime, or waits for the thread that does. NULL without memory. */
static struct wr_runtime *make_or_wait(void)
{
    uintptr_t mine = (uintptr_t)getpid() * 2 + 1;
    for (;;) {
        uintptr_t word = atomic_load(&the_runtime);
        if (word == mine)
            sched_yield();
        else if (word && !is_being_made(word))
            return (struct wr_runtime *)word;
        else if (atomic_compare_exchange_strong(&the_runtime, &word,
                                                mine)) /* also what our parent was making when it forked us */
            return make_runtime();
    }
}

/* A signal handler that adds must not wait for what its own thread has only begun. */
WR_NEVER_INLINE static struct wr_runtime *get_made(void)
{
    sigset_t signals;
    wr_signals_block(&signals);
    struct wr_runtime *runtime = make_or_wait();
    wr_signals_restore(&signals);
    return runtime;
}

/* ---- A forked child comes to life ------------------------------------------------------------ */

/* Everything below the engine goes on as it is; the engine is a new one. */
static bool revive(struct wr_runtime *runtime)
{
    struct wr_engine *old = atomic_load(&runtime->engine);
    wr_registry_after_fork(&runtime->registry);
    wr_producers_after_fork(&runtime->producers);
    wr_plugins_after_fork(&runtime->plugins);
    wr_watcher_after_fork(&runtime->watcher);
    wr_status_after_fork(&runtime->status);
    runtime->parent_was_ready = atomic_load(&runtime->readiness) == WR_READINESS_DONE;
    atomic_store(&runtime->readiness, WR_READINESS_NONE);
    struct wr_engine *engine =
        wr_engine_new(&runtime->registry, &runtime->producers, &runtime->plugins, &runtime->log, register_exit);
    if (!engine)
        return false;
    engine->forsaken = old;
    atomic_store(&runtime->engine, engine);
    return true;
}

enum { WIPED, ALIVE, REVIVING };

static bool revive_or_wait(struct wr_runtime *runtime)
{
    uint32_t state = WIPED;
    if (atomic_compare_exchange_strong(&runtime->life->alive, &state, REVIVING)) {
        bool revived = revive(runtime);
        atomic_store(&runtime->life->alive, revived ? ALIVE : WIPED);
        return revived;
    }
    while (atomic_load(&runtime->life->alive) == REVIVING)
        sched_yield();
    return atomic_load(&runtime->life->alive) == ALIVE;
}

WR_NEVER_INLINE static bool make_alive(struct wr_runtime *runtime)
{
    sigset_t signals;
    wr_signals_block(&signals);
    bool alive = revive_or_wait(runtime);
    wr_signals_restore(&signals);
    return alive;
}

struct wr_runtime *wr_runtime_get(void)
{
    struct wr_runtime *runtime = find_runtime();
    if (WR_UNLIKELY(!runtime))
        runtime = get_made();
    if (runtime && WR_LIKELY(atomic_load_explicit(&runtime->life->alive, memory_order_acquire) == ALIVE))
        return runtime;
    if (runtime && make_alive(runtime))
        return runtime;
    wr_producer_set_no_memory();
    return NULL;
}

struct wr_engine *wr_runtime_engine(struct wr_runtime *runtime)
{
    return atomic_load_explicit(&runtime->engine, memory_order_acquire);
}
