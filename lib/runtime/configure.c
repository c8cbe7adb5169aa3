#include "runtime/configure.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/benchmarkai.h"
#include "config/config_edit.h"
#include "config/config_read.h"
#include "config/tee.h"
#include "engine/commit.h"
#include "engine/plan.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/thread.h"
#include "text/common.h"
#include "text/error.h"

enum {
    COMMITS_MAX = 1000,         /* tries, while other threads commit */
    FIRST_WAIT_S = 10,          /* for the thread that configures first */
    JOURNAL_UNKNOWN_MS = 100,   /* a first value waits so long for the configuration to be read, */
    JOURNAL_EXPECTED_MS = 1000, /* and for its journal to be started */
};

/* ---- One way: config -> config -> plan -> commit --------------------------------------------- */

/* What the caller wants to be in force. */
struct request {
    enum { REPLACE, ROUTE, REREAD } kind;
    struct wr_config *config;           /* REPLACE: the new one; borrowed */
    const char *group, *type, *options; /* ROUTE: as weir_configure */
    bool in_background;                 /* REREAD: with the environment of the first time */
    struct wr_config **tried;           /* REREAD: gets what was read, for its list of files; held */
};

static struct wr_config *hold(struct wr_config *config)
{
    wr_config_hold(config);
    return config;
}

static struct wr_config *reread(struct wr_config *in_force, const struct request *request,
                                struct wr_error *error)
{
    if (!in_force->watched_count)
        return hold(in_force);
    struct wr_environment *environment = request->in_background ? in_force->environment : NULL;
    wr_config_drop(*request->tried);
    struct wr_config *base = wr_config_read_again(in_force, environment, request->tried, error);
    if (!base)
        return NULL;
    *request->tried = hold(base);
    struct wr_config *config = wr_config_edit_carry_over(base, in_force, error);
    wr_config_drop(base);
    return config;
}

/* config -> config. NULL: error is set. */
static struct wr_config *edit(struct wr_config *in_force, const struct request *request, struct wr_error *error)
{
    switch (request->kind) {
    case ROUTE: return wr_config_edit_route(in_force, request->group, request->type, request->options, error);
    case REREAD: return reread(in_force, request, error);
    default: return hold(request->config);
    }
}

/* The threads that a configuration may want, besides the dispatcher and the workers. */
static void start_threads(struct wr_runtime *runtime, struct wr_engine *engine)
{
    wr_watcher_start(&runtime->watcher);
    wr_collectors_start(&runtime->collectors, &runtime->log);
    wr_status_start(&runtime->status, engine);
}

/* Watcher and status follow the configuration in force. Another thread may commit in between: repeated until
 * what they were given is the latest. */
static void follow(struct wr_runtime *runtime, struct wr_engine *engine)
{
    uint64_t generation;
    do {
        struct wr_config *config = wr_engine_config(engine, &generation);
        wr_watcher_set(&runtime->watcher, config->watched, config->watched_count, config->settings.reload_ns);
        wr_status_set(&runtime->status, config->settings.status);
        wr_config_drop(config);
    } while (atomic_load(&engine->generation) != generation);
    if (atomic_load(&engine->dispatcher.running))
        start_threads(runtime, engine);
}

/* config -> plan, without a tee. NULL: error is set. */
static struct wr_plan *make_plain_plan(struct wr_engine *engine, struct wr_config *config, uint64_t generation,
                                       bool in_child, struct wr_error *error)
{
    struct wr_plan_site site = wr_engine_plan_site(engine, generation, in_child);
    return wr_plan_new(config, &site, error);
}

static struct wr_plan *make_teed_plan(struct wr_runtime *runtime, struct wr_config *config, uint64_t generation,
                                      bool in_child, struct wr_error *error)
{
    struct wr_config *both = wr_tee_add(config, runtime->tee, error);
    struct wr_plan *plan =
        both ? make_plain_plan(wr_runtime_engine(runtime), both, generation, in_child, error) : NULL;
    wr_config_drop(both);
    return plan;
}

/* config -> plan. A tee that does not go with the program's configuration is left out. NULL: error is set. */
static struct wr_plan *make_plan(struct wr_runtime *runtime, struct wr_config *config, uint64_t generation,
                                 bool in_child, struct wr_error *error)
{
    struct wr_error problem = {0};
    struct wr_plan *plan =
        runtime->tee ? make_teed_plan(runtime, config, generation, in_child, &problem) : NULL;
    if (plan)
        return plan;
    plan = make_plain_plan(wr_runtime_engine(runtime), config, generation, in_child, error);
    if (plan && runtime->tee && !atomic_exchange(&runtime->tee_logged, true))
        wr_log_write(&runtime->log, WEIR_LOG_ERROR, "%s; WEIR_TEE is not used with this configuration",
                     problem.text);
    return plan;
}

/* Once for what was read: not again for each weir_configure, and not in a forked child. */
static void log_warnings(struct wr_runtime *runtime, const struct wr_plan *plan)
{
    struct wr_config *origin = wr_config_origin(plan->config);
    bool is_new = !atomic_exchange(&origin->logged, true);
    if (is_new) {
        wr_unknown_keys_log(&origin->unknown, &runtime->log);
        wr_unknown_keys_log(&plan->unknown, &runtime->log);
    }
    wr_plan_log_skipped(plan, &runtime->log, is_new);
}

/* The sources of a configuration that is about to be put in force. Returns false with the error set. */
static bool plan_sources(struct wr_runtime *runtime, const struct wr_config *config, void **planned,
                         struct wr_error *error)
{
    struct wr_source_hooks *hooks = atomic_load(&runtime->source_hooks);
    *planned = hooks ? hooks->plan(hooks, config, error) : NULL;
    return !hooks || *planned;
}

static void finish_sources(struct wr_runtime *runtime, void *planned, bool is_committed, uint64_t generation)
{
    struct wr_source_hooks *hooks = atomic_load(&runtime->source_hooks);
    if (!planned)
        return;
    if (is_committed)
        hooks->commit(hooks, planned, generation + 1);
    else
        hooks->discard(planned);
}

/* Optimistic: no lock is held while plugins are loaded; if another thread commits meanwhile, this starts over
 * on top of its configuration. */
static int apply(struct wr_runtime *runtime, const struct request *request, bool check_only, bool in_child,
                 struct wr_error *error)
{
    struct wr_engine *engine = wr_runtime_engine(runtime);
    for (int i = 0; i < COMMITS_MAX; i++) {
        uint64_t generation;
        if (atomic_load(&runtime->producers.closed))
            return wr_error_set(error, WEIR_ERR_CLOSED, "weir has been shut down");
        struct wr_config *in_force = wr_engine_config(engine, &generation);
        struct wr_config *config = edit(wr_tee_without(in_force), request, error);
        struct wr_plan *plan = config ? make_plan(runtime, config, generation, in_child, error) : NULL;
        void *sources = NULL;
        bool valid = plan && plan_sources(runtime, config, &sources, error);
        wr_config_drop(config);
        wr_config_drop(in_force);
        if (!valid || check_only) {
            wr_plan_free(plan);
            finish_sources(runtime, sources, false, generation);
            return valid ? 0 : error->code;
        }
        log_warnings(runtime, plan);
        bool committed = wr_commit(engine, plan);
        finish_sources(runtime, sources, committed, generation);
        if (committed) {
            follow(runtime, engine);
            return 0;
        }
    }
    return wr_error_set(error, WEIR_ERR_BUSY, "other threads keep changing the configuration; gave up");
}

/* An engine without a valid first configuration gets the routes of the empty one. false: out of memory. */
static bool ensure_router(struct wr_runtime *runtime, struct wr_error *error)
{
    struct wr_engine *engine = wr_runtime_engine(runtime);
    uint64_t generation;
    if (atomic_load(&engine->generation))
        return true;
    struct wr_config *config = wr_engine_config(engine, &generation);
    struct wr_plan *plan = make_plan(runtime, wr_tee_without(config), generation, true, error);
    wr_config_drop(config);
    if (!plan)
        return false;
    if (wr_commit(engine, plan) || atomic_load(&engine->generation)) /* or another thread's */
        return true;
    return wr_error_no_memory(error, NULL);
}

/* ---- The first configuration ----------------------------------------------------------------- */

/* Threads that wait in wait_for_journal learn whether to go on waiting. */
static void expect_journal(struct wr_runtime *runtime, const struct wr_config *config)
{
    bool has_journal = config && config->settings.journal;
    atomic_store(&runtime->journal, has_journal ? WR_JOURNAL_EXPECTED : WR_JOURNAL_NONE);
}

static void configure_from_environment(struct wr_runtime *runtime)
{
    struct wr_error error = {0};
    bool has_variable = wr_config_has_variable("WEIR_CONFIG");
    struct wr_config *config =
        has_variable ? wr_config_read_variable("WEIR_CONFIG", &error) : wr_benchmarkai_config(&error);
    expect_journal(runtime, config);
    if (!config && !error.code)
        return;
    /* the loader may be unusable in a child that was forked while another thread was inside it */
    bool in_child = runtime->plugins.torn;
    const struct request request = {.kind = REPLACE, .config = config};
    bool applied = config && apply(runtime, &request, false, in_child, &error) == 0;
    wr_config_drop(config);
    runtime->from_environment = applied;
    if (applied)
        return;
    runtime->first_error = error;
    wr_log_write(&runtime->log, WEIR_LOG_ERROR, "%s; %s is not used", error.text,
                 has_variable ? "WEIR_CONFIG" : "BENCHMARK_AI");
}

/* A forked child repeats the configuration of its nearest configured ancestor. */
static void configure_child(struct wr_runtime *runtime, const struct wr_engine *ancestor)
{
    struct wr_error error = {0};
    struct wr_config *config = wr_tee_without(atomic_load(&ancestor->config));
    expect_journal(runtime, config);
    const struct request request = {.kind = REPLACE, .config = config};
    if (!wr_config_read_labels_again(config, &error) ||
        (runtime->tee && !wr_config_read_labels_again(runtime->tee, &error)) ||
        apply(runtime, &request, false, true, &error) != 0)
        wr_log_write(&runtime->log, WEIR_LOG_ERROR, "the forked process %ld cannot be configured: %s",
                     (long)getpid(), error.text);
}

/* Planned once alone: what is wrong with it is reported at once, and does not look like an error of the
 * program's. */
static void read_tee(struct wr_runtime *runtime)
{
    struct wr_error error = {0};
    if (runtime->has_tee_read || !wr_config_has_variable("WEIR_TEE"))
        return;
    runtime->has_tee_read = true;
    struct wr_config *tee = wr_tee_read(&error);
    struct wr_plan *plan = tee ? make_plain_plan(wr_runtime_engine(runtime), tee, 0, false, &error) : NULL;
    wr_plan_free(plan);
    if (plan) {
        runtime->tee = tee;
        return;
    }
    wr_config_drop(tee);
    wr_log_write(&runtime->log, WEIR_LOG_ERROR, "%s; WEIR_TEE is not used", error.text);
}

static void reload_in_background(void *ctx);

/* Plugins may need more stack than the thread of a first value has: see wr_thread_run_roomy. */
static void configure_first(void *argument)
{
    struct wr_runtime *runtime = argument;
    struct wr_error error = {0};
    atomic_store(&runtime->configurer, pthread_self());
    runtime->watcher.reload = reload_in_background;
    runtime->watcher.ctx = runtime;
    read_tee(runtime);
    if (runtime->ancestor)
        configure_child(runtime, runtime->ancestor);
    else
        configure_from_environment(runtime);
    if (!ensure_router(runtime, &error))
        wr_log_write(&runtime->log, WEIR_LOG_ERROR, "%s; values are refused until memory is available",
                     error.text);
}

bool wr_configure_ready(struct wr_runtime *runtime)
{
    uint32_t state = atomic_load_explicit(&runtime->readiness, memory_order_acquire);
    if (WR_LIKELY(state == WR_READINESS_DONE))
        return true;
    if (state == WR_READINESS_BEGUN ||
        !atomic_compare_exchange_strong(&runtime->readiness, &state, WR_READINESS_BEGUN))
        return state == WR_READINESS_DONE;
    atomic_store(&runtime->journal, WR_JOURNAL_UNKNOWN);
    atomic_store(&runtime->configurer, pthread_self());
    wr_thread_run_roomy(configure_first, runtime);
    atomic_store(&runtime->readiness, WR_READINESS_DONE);
    wr_futex_wake(&runtime->readiness, INT32_MAX);
    return true;
}

bool wr_configure_is_here(struct wr_runtime *runtime)
{
    return atomic_load(&runtime->readiness) == WR_READINESS_BEGUN &&
           pthread_equal(atomic_load(&runtime->configurer), pthread_self());
}

/* Waits for the thread that configures first; it may be loading plugins. false: it is this thread, further up
 * the stack, or it takes too long. */
static bool wait_until_ready(struct wr_runtime *runtime)
{
    int64_t deadline_ns = wr_clock_monotonic_ns() + FIRST_WAIT_S * WR_NS_PER_S;
    while (!wr_configure_ready(runtime)) {
        int64_t left_ns = deadline_ns - wr_clock_monotonic_ns();
        if (left_ns <= 0 || wr_configure_is_here(runtime))
            return false;
        wr_futex_wait(&runtime->readiness, WR_READINESS_BEGUN, left_ns);
    }
    return true;
}

/* ---- The program's calls --------------------------------------------------------------------- */

static int fail_not_ready(struct wr_error *error)
{
    return wr_error_set(error, WEIR_ERR_BUSY, "the first configuration is not finished yet");
}

int wr_configure_start(struct wr_runtime *runtime, struct wr_error *error)
{
    if (!wait_until_ready(runtime))
        return fail_not_ready(error);
    struct wr_engine *engine = wr_runtime_engine(runtime);
    if (!ensure_router(runtime, error))
        return error->code;
    if (wr_engine_start(engine))
        start_threads(runtime, engine);
    *error = runtime->first_error;
    return error->code;
}

struct call {
    struct wr_runtime *runtime;
    struct request request;
    const char *path; /* REPLACE without a config: read from this file, */
    const char *text; /* or from this text */
    size_t length;
    struct wr_error *error;
    int result;
};

static bool find_config(struct call *call)
{
    struct request *request = &call->request;
    if (call->path)
        request->config = wr_config_read_file(call->path, NULL, call->error);
    else if (call->text)
        request->config = wr_config_read_text("configuration", call->text, call->length, NULL, call->error);
    return request->kind != REPLACE || request->config;
}

/* A configuration from the environment takes precedence: the program's own are only checked. */
static int make_call(struct call *call)
{
    struct wr_runtime *runtime = call->runtime;
    if (!find_config(call))
        return call->error->code;
    bool ready = wait_until_ready(runtime);
    bool check_only = call->request.kind != REREAD && runtime->from_environment;
    return ready ? apply(runtime, &call->request, check_only, false, call->error) : fail_not_ready(call->error);
}

static void run_call(void *argument)
{
    struct call *call = argument;
    call->result = make_call(call);
}

/* Parses, loads plugins and creates handlers with enough stack. */
static int configure(struct call *call)
{
    if (wr_configure_is_here(call->runtime)) /* asked on this thread: the call may run on another */
        call->result = fail_not_ready(call->error);
    else
        wr_thread_run_roomy(run_call, call);
    wr_config_drop(call->request.config);
    return call->result;
}

int wr_configure_whole(struct wr_runtime *runtime, struct wr_config *config, struct wr_error *error)
{
    struct call call = {.runtime = runtime, .request = {.kind = REPLACE, .config = config}, .error = error};
    return configure(&call);
}

int wr_configure_file(struct wr_runtime *runtime, const char *path, struct wr_error *error)
{
    struct call call = {.runtime = runtime, .request = {.kind = REPLACE}, .path = path, .error = error};
    return configure(&call);
}

int wr_configure_text(struct wr_runtime *runtime, const char *text, size_t length, struct wr_error *error)
{
    struct call call = {
        .runtime = runtime, .request = {.kind = REPLACE}, .text = text, .length = length, .error = error};
    return configure(&call);
}

int wr_configure_route(struct wr_runtime *runtime, const char *group, const char *type, const char *options,
                       struct wr_error *error)
{
    struct call call = {.runtime = runtime,
                        .request = {.kind = ROUTE, .group = group, .type = type, .options = options},
                        .error = error};
    return configure(&call);
}

/* After a reload that failed: its files are watched, too, because the error may be in one of them, or one of
 * them may be missing. */
static void watch_tried(struct wr_runtime *runtime, const struct wr_config *tried)
{
    uint64_t generation;
    struct wr_config *config = wr_engine_config(wr_runtime_engine(runtime), &generation);
    size_t count = config->watched_count;
    struct wr_watched *watched = calloc(count + tried->watched_count + 1, sizeof *watched);
    for (size_t i = 0; watched && i < count; i++)
        watched[i] = config->watched[i];
    for (size_t i = 0; watched && i < tried->watched_count; i++)
        watched[count++] = tried->watched[i];
    if (watched)
        wr_watcher_set(&runtime->watcher, watched, count, config->settings.reload_ns);
    free(watched);
    wr_config_drop(config);
}

int wr_configure_reload(struct wr_runtime *runtime, bool in_background, struct wr_error *error)
{
    struct wr_config *tried = NULL;
    struct call call = {.runtime = runtime,
                        .request = {.kind = REREAD, .in_background = in_background, .tried = &tried},
                        .error = error};
    int result = configure(&call);
    if (result && tried)
        watch_tried(runtime, tried);
    wr_config_drop(tried);
    struct wr_source_hooks *sources = atomic_load(&runtime->source_hooks);
    if (!in_background && atomic_load(&runtime->readiness) == WR_READINESS_DONE)
        wr_engine_reopen(wr_runtime_engine(runtime));
    if (!in_background && sources)
        sources->reload(sources);
    return result;
}

static void reload_in_background(void *ctx)
{
    struct wr_runtime *runtime = ctx;
    struct wr_error error = {0};
    if (wr_configure_reload(runtime, true, &error) == 0)
        wr_log_write(&runtime->log, WEIR_LOG_INFO, "configuration reloaded");
    else
        wr_log_write(&runtime->log, WEIR_LOG_ERROR, "%s; the configuration in force stays", error.text);
}

/* ---- A group's first value ------------------------------------------------------------------- */

/* [producer] Another thread configures first. If the configuration has a journal, or is not read yet, this
 * waits: a value added now would not be in the journal. */
static void wait_for_journal(struct wr_runtime *runtime)
{
    if (wr_producer_is_own() || wr_configure_is_here(runtime))
        return;
    int64_t start_ns = wr_clock_monotonic_ns(), now_ns = start_ns;
    while (atomic_load(&runtime->readiness) == WR_READINESS_BEGUN) {
        uint32_t journal = atomic_load(&runtime->journal);
        int64_t wait_ms = journal == WR_JOURNAL_EXPECTED ? JOURNAL_EXPECTED_MS : JOURNAL_UNKNOWN_MS;
        if (journal == WR_JOURNAL_NONE || now_ns - start_ns >= wait_ms * WR_NS_PER_MS)
            return;
        wr_futex_wait(&runtime->readiness, WR_READINESS_BEGUN, WR_NS_PER_MS);
        now_ns = wr_clock_monotonic_ns();
    }
}

enum wr_warmth wr_configure_warm(struct wr_runtime *runtime, struct wr_group *group, bool start)
{
    struct wr_error error = {0};
    if (!wr_configure_ready(runtime) && start)
        wait_for_journal(runtime);
    if (!wr_configure_ready(runtime))
        return WR_WARMTH_NOT_YET;
    struct wr_engine *engine = wr_runtime_engine(runtime);
    if (!ensure_router(runtime, &error))
        return WR_WARMTH_NO_ROUTES;
    if (wr_engine_warm(engine, group, start))
        start_threads(runtime, engine);
    return WR_WARMTH_WARM;
}
