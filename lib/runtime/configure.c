#include "runtime/configure.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/benchmarkai.h"
#include "config/config_edit.h"
#include "engine/commit.h"
#include "os/clock.h"
#include "text/common.h"
#include "text/error.h"
#include "os/futex.h"
#include "config/parse.h"

enum { CONFLICTS_MOST = 1000, PATIENCE_S = 10 };

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
        if (wr_commit(engine, plan, generation)) {
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

static void reload_in_background(void *ctx);

static void configure_first(struct wr_runtime *runtime)
{
    runtime->watcher.reload = reload_in_background;
    runtime->watcher.ctx = runtime;
    const struct wr_engine *parent = wr_runtime_engine(runtime)->forsaken;
    if (parent && runtime->parent_was_ready)
        configure_child(runtime, parent);
    else
        configure_from_environment(runtime);
}

bool wr_configure_ready(struct wr_runtime *runtime)
{
    struct wr_error error = {0};
    uint32_t state = atomic_load_explicit(&runtime->readiness, memory_order_acquire);
    if (WR_LIKELY(state == WR_READINESS_DONE))
        return true;
    if (state == WR_READINESS_BEGUN ||
        !atomic_compare_exchange_strong(&runtime->readiness, &state, WR_READINESS_BEGUN))
        return state == WR_READINESS_DONE;
    wr_prospect_forget(&runtime->prospect);
    atomic_store(&runtime->configurer, pthread_self());
    configure_first(runtime);
    if (!wr_commit_make_router(wr_runtime_engine(runtime), &error))
        wr_log_say(&runtime->log, WEIR_LOG_ERROR, "%s; values are refused until there is", error.text);
    atomic_store(&runtime->readiness, WR_READINESS_DONE);
    wr_futex_wake(&runtime->readiness, INT32_MAX);
    return true;
}

bool wr_configure_is_here(struct wr_runtime *runtime)
{
    return atomic_load(&runtime->readiness) == WR_READINESS_BEGUN &&
           pthread_equal(atomic_load(&runtime->configurer), pthread_self());
}

/* Another thread loads plugins, maybe. When it is this one, further up, or takes for ever, the caller is told
 * so. */
static bool wait_until_ready(struct wr_runtime *runtime)
{
    int64_t deadline_ns = wr_clock_monotonic_ns() + PATIENCE_S * WR_NS_PER_S;
    while (!wr_configure_ready(runtime)) {
        int64_t left_ns = deadline_ns - wr_clock_monotonic_ns();
        if (left_ns <= 0 || wr_configure_is_here(runtime))
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

int wr_configure_whole(struct wr_runtime *runtime, struct wr_config *config, struct wr_error *error)
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
    return wr_config_edit_route(in_force, call->group, call->type, call->options, error);
}

int wr_configure_route(struct wr_runtime *runtime, const char *group, const char *type, const char *options,
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
    struct wr_environment *environment = *in_background ? in_force->environment : NULL;
    struct wr_config *config = wr_parse_file(in_force->path, environment, error);
    if (!config)
        return NULL;
    struct wr_config *whole = wr_config_edit_carry_over(config, in_force, error);
    wr_config_drop(config);
    return whole;
}

int wr_configure_reload(struct wr_runtime *runtime, bool in_background, struct wr_error *error)
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
    if (wr_configure_reload(runtime, true, &error) == 0)
        wr_log_say(&runtime->log, WEIR_LOG_INFO, "the configuration was read again");
    else
        wr_log_say(&runtime->log, WEIR_LOG_ERROR, "%s; the configuration in force stays", error.text);
}

/* ---- A group's first value ------------------------------------------------------------------- */

/* [producer] Another thread is at it. Where that leads to a journal, or may do so, the caller waits: what it
 * added now would not be in it. */
static void wait_for_journal(struct wr_runtime *runtime)
{
    if (!wr_producer_is_own() && !wr_configure_is_here(runtime))
        wr_prospect_wait(&runtime->prospect, &runtime->readiness, WR_READINESS_BEGUN);
}

enum wr_warmth wr_configure_warm(struct wr_runtime *runtime, struct wr_group *group, bool start)
{
    struct wr_error error = {0};
    if (!wr_configure_ready(runtime) && start)
        wait_for_journal(runtime);
    if (!wr_configure_ready(runtime))
        return WR_WARMTH_NOT_YET;
    struct wr_engine *engine = wr_runtime_engine(runtime);
    if (!wr_commit_make_router(engine, &error))
        return WR_WARMTH_NO_ROUTES;
    if (wr_engine_warm(engine, group, start))
        start_others(runtime, engine);
    return WR_WARMTH_WARM;
}
