#include "runtime/runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "handler/upstream.h"
#include "os/cancel.h"
#include "os/clock.h"
#include "os/file_perms.h"
#include "runtime/intake.h"
#include "text/common.h"
#include "status/report.h"
#include "os/signals.h"

/* The root of all state: a pointer to the runtime; 0 before it exists; pid * 2 + 1 while the process `pid`
 * creates it.
 */
static _Atomic uintptr_t the_runtime;

/* BACKGROUND_TIMEOUT_MS: for the threads of the reload and of the status file to end, each. */
enum { EXITS_MOST = 32, BACKGROUND_TIMEOUT_MS = 250 };

static bool is_being_created(uintptr_t word)
{
    return word & 1;
}

struct wr_runtime *wr_runtime_find(void)
{
    /* acquire: pairs with the store in create_runtime */
    uintptr_t word = atomic_load_explicit(&the_runtime, memory_order_acquire);
    return is_being_created(word) ? NULL : (struct wr_runtime *)word;
}

enum { WIPED, ALIVE, RESTARTING };

/* Returns the engine of this process; NULL: it has none, as a child that has not used weir since its fork. */
static struct wr_engine *own_engine(const struct wr_runtime *runtime)
{
    bool is_alive = runtime && atomic_load(&runtime->life->alive) == ALIVE;
    return is_alive ? atomic_load(&runtime->engine) : NULL;
}

/* ---- Exit ------------------------------------------------------------------------------------ */

/* Another thread shuts down, or one has. */
static int wait_for_other(struct wr_engine *engine, int64_t deadline_ns, struct wr_error *error)
{
    struct wr_visit visit;
    int result = wr_engine_shutdown_wait(engine, deadline_ns, error);
    if (!wr_engine_enter_by(engine, &visit, deadline_ns))
        return result;
    wr_engine_take_late(engine);
    wr_engine_leave(&visit);
    return result;
}

int wr_runtime_shutdown(struct wr_runtime *runtime, int64_t deadline_ns, struct wr_error *error)
{
    struct wr_engine *engine = atomic_load(&runtime->engine);
    if (!wr_engine_close(engine))
        return wait_for_other(engine, deadline_ns, error);
    struct wr_source_hooks *sources = atomic_load(&runtime->source_hooks);
    wr_collectors_stop(&runtime->collectors, deadline_ns);
    if (sources)
        sources->stop(sources, deadline_ns);
    int result = wr_engine_shutdown(engine, deadline_ns, error);
    wr_report_write(engine);
    wr_watcher_stop(&runtime->watcher, wr_clock_monotonic_ns() + BACKGROUND_TIMEOUT_MS * WR_NS_PER_MS);
    wr_status_stop(&runtime->status, wr_clock_monotonic_ns() + BACKGROUND_TIMEOUT_MS * WR_NS_PER_MS);
    wr_engine_shutdown_end(engine, result ? error : NULL);
    return result;
}

static void at_exit(void)
{
    WR_CANCEL_DISABLED;
    struct wr_error error;
    struct wr_runtime *runtime = wr_runtime_find();
    struct wr_engine *engine = own_engine(runtime);
    /* a child that has added nothing since its fork has nothing to deliver, and a thread of weir's own cannot
     * wait for itself */
    if (!engine || wr_producer_is_own())
        return;
    if (atomic_load(&engine->unfinished)) /* at_exit is registered several times, and waits once */
        return;
    const struct wr_config *config = atomic_load(&engine->config);
    int64_t deadline_ns = wr_clock_monotonic_ns() + config->settings.shutdown_timeout_ns;
    if (!atomic_load(&engine->closed))
        atomic_store(&runtime->exit_ends, true);
    if (wr_runtime_shutdown(runtime, deadline_ns, &error) == WEIR_ERR_TIMEOUT && !atomic_load(&engine->ended))
        wr_engine_report_unfinished(engine);
}

/* Of the C++ runtime's interface, in libc; absent in other C libraries than glibc. */
extern int __cxa_thread_atexit_impl(void (*destroy)(void *object), void *object, void *library) // NOLINT
    __attribute__((weak));

/* Exit handlers of the program may destroy what its own functions use that weir calls. */
static bool calls_the_program(struct wr_runtime *runtime)
{
    return atomic_load(&runtime->log.sink) || atomic_load(&runtime->source_hooks);
}

static void at_end_of_main_thread(void *unused)
{
    (void)unused;
    struct wr_runtime *runtime = wr_runtime_find();
    if (runtime && (atomic_load(&runtime->ends_early) || calls_the_program(runtime)))
        at_exit();
}

/* Libraries that handlers use register exit handlers whenever they are first used, also while the program is
 * already about to end, and these destroy what a worker may be using at that moment. exit(3) runs the
 * destructors of the calling thread's thread-local objects before all exit handlers, whatever their order. If
 * the main thread ends by pthread_exit, glibc does not run them: then the process continues. Other threads get
 * none, since it would also run when only they end. Types that work at exit use no such library: with these
 * alone it is left to weir's exit handler, so that those of the program can add values. */
static void watch_main_thread(void)
{
    static _Thread_local bool watched;
    if (watched || !__cxa_thread_atexit_impl || gettid() != getpid())
        return;
    watched = __cxa_thread_atexit_impl(at_end_of_main_thread, NULL, &the_runtime) == 0;
}

static void report_late(void)
{
    struct wr_runtime *runtime = wr_runtime_find();
    const struct wr_engine *engine = own_engine(runtime);
    if (!engine)
        return;
    /* a function of the program may be unusable by now: it is called only if the program asks for reports */
    bool warns = atomic_load(&runtime->exit_ends) && !atomic_load(&runtime->log.sink);
    wr_report_write_late(engine, warns ? WEIR_LOG_WARNING : WEIR_LOG_INFO);
}

/* The main thread need not be one that uses weir. An exit handler that is registered this early runs after
 * those of the program, which may still add values. */
__attribute__((constructor)) static void watch_at_load(void)
{
    watch_main_thread();
    atexit(report_late);
}

/* Exit handlers run in reverse order of registration, so weir's is registered again once a library may have
 * registered one, to run before it: for a process that another thread ends. Each registration takes memory
 * permanently, so it is repeated at most EXITS_MOST times per type: by then the libraries of the type have been
 * used. For a type whose libraries register none after prepare and create, once is enough.
 *
 * Not while another thread forks: atexit waits for memory, which fork keeps locked, with a lock held that stays
 * locked in the child for ever. */
static void register_exit(struct wr_type *type)
{
    bool works_at_exit = type->is.flags & (WEIR_TYPE_SHARES_NOTHING | WEIR_TYPE_WORKS_AT_EXIT);
    bool is_wanted = atomic_fetch_add(&type->exits, 1) < (works_at_exit ? 1 : EXITS_MOST);
    if (is_wanted) {
        wr_plugins_enter(type->home, type);
        atexit(at_exit);
        wr_plugins_leave(type->home, type);
    }
    if (!works_at_exit)
        atomic_store(&wr_runtime_find()->ends_early, true);
}

/* ---- Fork ------------------------------------------------------------------------------------ */

static void before_fork(void)
{
    struct wr_runtime *runtime = wr_runtime_find();
    struct wr_engine *engine = own_engine(runtime);
    if (engine)
        wr_fork_prepare(&runtime->fork, engine, &runtime->status.file);
}

static void after_fork_in_parent(void)
{
    struct wr_runtime *runtime = wr_runtime_find();
    struct wr_engine *engine = own_engine(runtime);
    if (engine)
        wr_fork_parent(&runtime->fork, engine, &runtime->status.file);
}

/* By the thread that forked. */
static void give_up_parent(struct wr_runtime *runtime)
{
    runtime->life->process = getpid();
    runtime->life->forker = wr_producer_mine;
    wr_producers_forked(&runtime->producers);
    wr_fork_child(atomic_load(&runtime->engine), &runtime->status.file);
    struct wr_source_hooks *sources = atomic_exchange(&runtime->source_hooks, NULL);
    if (sources)
        sources->abandon(sources);
}

/* A fork handler of the program may run before this one, and use weir: then the child has an engine of its own
 * already. The process is compared as well as the page, since an old kernel does not wipe it. */
static void after_fork_in_child(void)
{
    struct wr_runtime *runtime = wr_runtime_find();
    if (!runtime)
        return;
    if (runtime->life->process != getpid()) {
        atomic_store(&runtime->life->alive, WIPED);
        give_up_parent(runtime);
    }
    wr_fork_child_leave(&runtime->fork);
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
    wr_config_drop(runtime->empty);
    free(runtime);
}

static void read_environment(struct wr_runtime *runtime)
{
    const char *level = secure_getenv("WEIR_LOG");
    if (!wr_log_init(&runtime->log, level))
        wr_log_write(&runtime->log, WEIR_LOG_ERROR,
                     "WEIR_LOG: \"%.40s\" is not a level; allowed: off, error, warning, info, debug", level);
    const char *folders = secure_getenv("WEIR_PLUGIN_PATH");
    runtime->plugins.folders = folders ? strdup(folders) : NULL;
    wr_file_perms_read_environment();
}

/* weir's threads run code that must not be unloaded. The shared library is linked with -z nodelete; a static
 * copy inside a library that the program may dlclose has to pin that library. */
static void pin(void)
{
    Dl_info info;
    if (dladdr(&the_runtime, &info) && info.dli_fname)
        dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static bool read_source(void *ctx, size_t index, struct wr_status_source *source)
{
    struct wr_runtime *runtime = ctx;
    struct wr_source_hooks *sources = atomic_load(&runtime->source_hooks);
    return sources && sources->read_status(sources, index, source);
}

static size_t read_senders(void *ctx, size_t index, struct wr_status_sender *senders, size_t room)
{
    struct wr_runtime *runtime = ctx;
    struct wr_source_hooks *sources = atomic_load(&runtime->source_hooks);
    return sources ? sources->read_senders(sources, index, senders, room) : 0;
}

static bool read_counts(void *ctx, size_t index, struct wr_selfmetrics_source *source)
{
    struct wr_runtime *runtime = ctx;
    struct wr_source_hooks *sources = atomic_load(&runtime->source_hooks);
    return sources && sources->read_counts(sources, index, source);
}

static struct wr_engine *make_engine(struct wr_runtime *runtime)
{
    struct wr_engine *engine = wr_engine_new(&runtime->registry, &runtime->producers, &runtime->plugins,
                                             &runtime->log, runtime->empty, register_exit);
    if (engine)
        engine->selfmetrics.sources = (struct wr_selfmetrics_sources){read_counts, runtime};
    return engine;
}

static bool set_up(struct wr_runtime *runtime)
{
    pin();
    runtime->status.sources = (struct wr_snapshot_sources){read_source, read_senders, runtime};
    runtime->life = map_life();
    if (!runtime->life || !wr_registry_init(&runtime->registry) || !wr_producers_init(&runtime->producers))
        return false;
    runtime->producers.wake_reader = wr_intake_wake_dispatcher;
    read_environment(runtime);
    runtime->empty = wr_config_new();
    if (!runtime->empty)
        return false;
    struct wr_engine *engine = make_engine(runtime);
    if (!engine)
        return false;
    atomic_store(&runtime->engine, engine);
    atomic_store(&runtime->life->alive, ALIVE);
    watch_main_thread();
    if (wr_log_wants(&runtime->log, WEIR_LOG_INFO)) /* the ledger is reported even without a handler */
        atexit(at_exit);
    return pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

static struct wr_runtime *create_runtime(void)
{
    struct wr_runtime *runtime = calloc(1, sizeof *runtime);
    if (runtime && !set_up(runtime)) {
        free_runtime(runtime);
        runtime = NULL;
    }
    atomic_store(&the_runtime, (uintptr_t)runtime);
    return runtime;
}

/* Creates the runtime, or waits for the thread that does. Returns NULL if out of memory. */
static struct wr_runtime *create_or_wait(void)
{
    uintptr_t mine = (uintptr_t)getpid() * 2 + 1;
    for (;;) {
        uintptr_t word = atomic_load(&the_runtime);
        if (word == mine)
            sched_yield();
        else if (word && !is_being_created(word))
            return (struct wr_runtime *)word;
        else if (atomic_compare_exchange_strong(&the_runtime, &word, mine))
            return create_runtime(); /* also if the parent was creating it when it forked this process */
    }
}

/* Signals are blocked, as a signal handler that adds a value must not wait for the thread that it interrupted.
 */
WR_NEVER_INLINE static struct wr_runtime *get_slow(void)
{
    WR_CANCEL_DISABLED;
    sigset_t signals;
    wr_signals_block(&signals);
    struct wr_runtime *runtime = create_or_wait();
    wr_signals_restore(&signals);
    return runtime;
}

/* ---- After a fork ---------------------------------------------------------------------------- */

/* Creates a new engine. Everything below it is kept. */
static bool restart(struct wr_runtime *runtime)
{
    /* not after _Fork(3), which runs no fork handlers: there it is not known what the thread has interrupted */
    if (runtime->life->process != getpid() && wr_fork_is_prepared(&runtime->fork))
        give_up_parent(runtime);
    struct wr_engine *old = atomic_load(&runtime->engine);
    watch_main_thread();
    wr_registry_after_fork(&runtime->registry);
    wr_producers_after_fork(&runtime->producers, runtime->life->forker);
    wr_plugins_after_fork(&runtime->plugins);
    wr_upstream_after_fork();
    /* nothing is freed: another thread of the parent may have been about to do so. After _Fork, where no fork
     * handler ran, the status file is still open. */
    wr_status_file_abandon(&runtime->status.file);
    runtime->status = (struct wr_status){.sources = runtime->status.sources};
    runtime->watcher = (struct wr_watcher){0};
    runtime->collectors = (struct wr_collectors){0};
    if (atomic_load(&runtime->readiness) == WR_READINESS_DONE)
        runtime->ancestor = old;
    atomic_store(&runtime->readiness, WR_READINESS_NONE);
    struct wr_engine *engine = make_engine(runtime);
    if (!engine)
        return false;
    engine->forsaken = old;
    atomic_store(&runtime->engine, engine);
    return true;
}

static bool restart_or_wait(struct wr_runtime *runtime)
{
    uint32_t state = WIPED;
    if (atomic_compare_exchange_strong(&runtime->life->alive, &state, RESTARTING)) {
        bool restarted = restart(runtime);
        atomic_store(&runtime->life->alive, restarted ? ALIVE : WIPED);
        return restarted;
    }
    while (atomic_load(&runtime->life->alive) == RESTARTING)
        sched_yield();
    return atomic_load(&runtime->life->alive) == ALIVE;
}

WR_NEVER_INLINE static bool restart_slow(struct wr_runtime *runtime)
{
    WR_CANCEL_DISABLED;
    sigset_t signals;
    wr_signals_block(&signals);
    bool alive = restart_or_wait(runtime);
    wr_signals_restore(&signals);
    return alive;
}

struct wr_runtime *wr_runtime_get(void)
{
    struct wr_runtime *runtime = wr_runtime_find();
    if (WR_UNLIKELY(!runtime))
        runtime = get_slow();
    if (runtime && WR_LIKELY(atomic_load_explicit(&runtime->life->alive, memory_order_acquire) == ALIVE))
        return runtime;
    if (runtime && restart_slow(runtime))
        return runtime;
    wr_producer_set_no_memory();
    return NULL;
}

struct wr_engine *wr_runtime_engine(struct wr_runtime *runtime)
{
    return atomic_load_explicit(&runtime->engine, memory_order_acquire);
}
