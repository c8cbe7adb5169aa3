#include "runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "benchmarkai.h"
#include "calls.h"
#include "change.h"
#include "clock.h"
#include "common.h"
#include "error.h"
#include "futex.h"
#include "parse.h"
#include "report.h"
#include "signals.h"

/* All state of weir hangs off this: a pointer to the runtime; 0 before there is one; an odd number while
 * process number / 2 makes it. */
static _Atomic uintptr_t the_runtime;

enum {
    EXITS_MOST = 32,
    CONFLICTS_MOST = 1000,
    PATIENCE_S = 10,
    PROSPECT_MS = 100,
    JOURNAL_S = 1,
    STATUS_PATIENCE_MS = 250
};

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
    free(runtime);
}

static void reload_in_background(void *ctx);

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
    read_environment(runtime);
    runtime->watcher.reload = reload_in_background;
    runtime->watcher.ctx = runtime;
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
    if (WR_UNLIKELY(!runtime) && !(runtime = get_made()))
        return NULL;
    if (WR_LIKELY(atomic_load_explicit(&runtime->life->alive, memory_order_acquire) == ALIVE) ||
        make_alive(runtime))
        return runtime;
    return NULL;
}

struct wr_engine *wr_runtime_engine(struct wr_runtime *runtime)
{
    return atomic_load_explicit(&runtime->engine, memory_order_acquire);
}

/* ---- Configurations -------------------------------------------------------------------------- */

/* Makes the next configuration from the one in force. */
typedef struct wr_config *make_config(void *ctx, struct wr_config *in_force, struct wr_error *error);

/* The threads that the configuration asks for, beside the dispatcher's and the handlers'. */
static void start_others(struct wr_runtime *runtime, struct wr_engine *engine)
{
    wr_watcher_start(&runtime->watcher);
    wr_status_start(&runtime->status, engine);
}

static void follow(struct wr_runtime *runtime)
{
    uint64_t generation;
    struct wr_engine *engine = wr_runtime_engine(runtime);
    struct wr_config *config = wr_engine_config(engine, &generation);
    wr_watcher_set(&runtime->watcher, config->path, config->settings.reload_ns);
    wr_status_set(&runtime->status, config->settings.status);
    wr_config_drop(config);
    if (wr_engine_is_started(engine))
        start_others(runtime, engine);
}

/* Plans and commits; when another configuration came in between, again, on top of that one. */
static int apply(struct wr_runtime *runtime, make_config *make, void *ctx, bool check_only, bool in_child,
                 struct wr_error *error)
{
    struct wr_engine *engine = wr_runtime_engine(runtime);
    for (int i = 0; i < CONFLICTS_MOST; i++) {
        uint64_t generation;
        if (atomic_load(&runtime->producers.closed))
            return wr_error_set(error, WEIR_ERR_CLOSED, "weir has been shut down");
        struct wr_config *in_force = wr_engine_config(engine, &generation);
        struct wr_config *config = make(ctx, in_force, error);
        wr_config_drop(in_force);
        struct wr_plan *plan = config ? wr_engine_plan(engine, config, in_child, error) : NULL;
        wr_config_drop(config);
        if (!plan)
            return error->code;
        if (check_only) {
            wr_plan_free(plan);
            return 0;
        }
        if (wr_change_commit(engine, plan, generation)) {
            follow(runtime);
            return 0;
        }
    }
    return wr_error_set(error, WEIR_ERR_BUSY, "the configuration is being changed by others all the time");
}

static struct wr_config *make_given(void *ctx, struct wr_config *in_force, struct wr_error *error)
{
    (void)in_force;
    (void)error;
    wr_config_hold(ctx);
    return ctx;
}

/* ---- Readiness ------------------------------------------------------------------------------- */

static struct wr_config *read_config(const char *text, struct wr_error *error)
{
    if (*text == '{')
        return wr_parse_text("WEIR_CONFIG", text, strlen(text), NULL, error);
    return wr_parse_file(text, NULL, error);
}

static void configure_from_environment(struct wr_runtime *runtime)
{
    struct wr_error error = {0};
    const char *text = secure_getenv("WEIR_CONFIG");
    bool has_text = text && *text;
    struct wr_config *config = has_text ? read_config(text, &error) : wr_benchmarkai_config(&error);
    wr_prospect_see(&runtime->prospect, config && config->settings.journal);
    if (!config && !error.code)
        return;
    /* a child whose parent forked while it was at this point may find the loader unusable */
    bool in_child = runtime->plugins.torn;
    bool done = config && apply(runtime, make_given, config, false, in_child, &error) == 0;
    wr_config_drop(config);
    runtime->from_environment = done;
    if (!done)
        wr_log_say(&runtime->log, WEIR_LOG_ERROR, "%s; %s is not used", error.text,
                   has_text ? "WEIR_CONFIG" : "BENCHMARK_AI");
}

/* What its parent had. */
static void configure_child(struct wr_runtime *runtime, const struct wr_engine *parent)
{
    struct wr_error error = {0};
    struct wr_config *config = atomic_load(&parent->config);
    wr_prospect_see(&runtime->prospect, config && config->settings.journal);
    if (apply(runtime, make_given, config, false, true, &error) != 0)
        wr_log_say(&runtime->log, WEIR_LOG_ERROR, "the forked process %ld cannot be configured: %s",
                   (long)getpid(), error.text);
}

static void configure_first(struct wr_runtime *runtime)
{
    const struct wr_engine *parent = wr_runtime_engine(runtime)->forsaken;
    if (parent && runtime->parent_was_ready)
        configure_child(runtime, parent);
    else
        configure_from_environment(runtime);
}

bool wr_runtime_make_ready(struct wr_runtime *runtime)
{
    uint32_t state = atomic_load_explicit(&runtime->readiness, memory_order_acquire);
    if (WR_LIKELY(state == WR_READINESS_DONE))
        return true;
    if (state == WR_READINESS_BEGUN ||
        !atomic_compare_exchange_strong(&runtime->readiness, &state, WR_READINESS_BEGUN))
        return state == WR_READINESS_DONE;
    wr_prospect_forget(&runtime->prospect);
    atomic_store(&runtime->configurer, pthread_self());
    configure_first(runtime);
    wr_change_make_router(wr_runtime_engine(runtime));
    atomic_store(&runtime->readiness, WR_READINESS_DONE);
    wr_futex_wake(&runtime->readiness, INT32_MAX);
    return true;
}

bool wr_runtime_is_configurer(struct wr_runtime *runtime)
{
    return atomic_load(&runtime->readiness) == WR_READINESS_BEGUN &&
           pthread_equal(atomic_load(&runtime->configurer), pthread_self());
}

/* Another thread loads plugins, maybe. When it is this one, further up, or takes for ever, the caller is told
 * so. */
static bool wait_until_ready(struct wr_runtime *runtime)
{
    int64_t deadline_ns = wr_clock_monotonic_ns() + PATIENCE_S * WR_NS_PER_S;
    while (!wr_runtime_make_ready(runtime)) {
        int64_t left_ns = deadline_ns - wr_clock_monotonic_ns();
        if (left_ns <= 0 || wr_runtime_is_configurer(runtime))
            return false;
        wr_futex_wait(&runtime->readiness, WR_READINESS_BEGUN, left_ns);
    }
    return true;
}

/* ---- What programs ask for ------------------------------------------------------------------- */

static int configure(struct wr_runtime *runtime, make_config *make, void *ctx, struct wr_error *error)
{
    if (!wait_until_ready(runtime))
        return wr_error_set(error, WEIR_ERR_BUSY, "weir is still being configured for the first time");
    return apply(runtime, make, ctx, runtime->from_environment, false, error);
}

int wr_runtime_configure(struct wr_runtime *runtime, struct wr_config *config, struct wr_error *error)
{
    int result = configure(runtime, make_given, config, error);
    wr_config_drop(config);
    return result;
}

struct call {
    const char *group, *type, *options;
};

static struct wr_config *make_with_route(void *ctx, struct wr_config *in_force, struct wr_error *error)
{
    const struct call *call = ctx;
    return wr_calls_route(in_force, call->group, call->type, call->options, error);
}

int wr_runtime_route(struct wr_runtime *runtime, const char *group, const char *type, const char *options,
                     struct wr_error *error)
{
    struct call call = {group, type, options};
    return configure(runtime, make_with_route, &call, error);
}

static struct wr_config *make_reread(void *ctx, struct wr_config *in_force, struct wr_error *error)
{
    const bool *in_background = ctx;
    if (!in_force->path) {
        wr_config_hold(in_force);
        return in_force;
    }
    struct wr_environment *environment = *in_background ? in_force->sources[0].environment : NULL;
    struct wr_config *config = wr_parse_file(in_force->path, environment, error);
    if (!config)
        return NULL;
    struct wr_config *whole = wr_calls_carry_over(config, in_force, error);
    wr_config_drop(config);
    return whole;
}

int wr_runtime_reload(struct wr_runtime *runtime, bool in_background, struct wr_error *error)
{
    if (!wait_until_ready(runtime))
        return wr_error_set(error, WEIR_ERR_BUSY, "weir is still being configured for the first time");
    int result = apply(runtime, make_reread, &in_background, false, false, error);
    if (!in_background)
        wr_engine_reopen(wr_runtime_engine(runtime));
    return result;
}

static void reload_in_background(void *ctx)
{
    struct wr_runtime *runtime = ctx;
    struct wr_error error = {0};
    if (wr_runtime_reload(runtime, true, &error) == 0)
        wr_log_say(&runtime->log, WEIR_LOG_INFO, "the configuration was read again");
    else
        wr_log_say(&runtime->log, WEIR_LOG_ERROR, "%s; the configuration in force stays", error.text);
}

void wr_runtime_warm(struct wr_runtime *runtime, struct wr_group *group, bool start)
{
    struct wr_engine *engine = wr_runtime_engine(runtime);
    if (wr_engine_warm(engine, group, start))
        start_others(runtime, engine);
}
