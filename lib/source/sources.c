#include "source/sources.h"

#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "os/lock.h"
#include "runtime/configure.h"
#include "runtime/runtime.h"
#include "source/source.h"
#include "text/error.h"

/* Lock order: changing, then the round lock (of wr_source_start and wr_source_join), or lock. */
struct sources {
    struct wr_source_hooks hooks; /* first: it leads here */
    struct wr_runtime *runtime;
    struct wr_source_types types;
    struct wr_lock changing;  /* held by a thread that starts and stops sources */
    struct wr_lock lock;      /* for the list */
    struct wr_condition ends; /* signalled when a source's thread ends; with lock */
    struct wr_source *first;
    struct wr_source *stuck; /* they did not stop in time: never freed */
    uint64_t generation;     /* of the configuration that they are of; with `changing` */
    bool is_stopped;
    bool is_committing; /* the list is incomplete; with lock */
};

/* ---- A configuration's sources ---------------------------------------------------------------- */

struct planned {
    struct wr_source *first;
    struct wr_unknown_keys unknown;
};

void wr_sources_free(struct wr_source *source)
{
    while (source) {
        struct wr_source *next = source->next;
        wr_source_free(source);
        source = next;
    }
}

static struct wr_source *make_one(struct wr_runtime *runtime, struct wr_source_types *types,
                                  const struct wr_config *config, const struct wr_config_handler *given,
                                  struct wr_unknown_keys *unknown, struct wr_error *error)
{
    struct wr_error problem = {0};
    struct wr_source_type *type =
        wr_source_types_find(types, &runtime->plugins, given->type, given->plugin, &problem);
    if (type)
        return wr_source_new(runtime, type, config, given, unknown, error);
    const struct wr_node *at = wr_node_member(given->node, given->plugin ? "plugin" : "type");
    wr_node_error(at, error, "%s", problem.text);
    error->code = problem.code;
    return NULL;
}

bool wr_sources_make(struct wr_runtime *runtime, struct wr_source_types *types, const struct wr_config *config,
                     struct wr_source **first, struct wr_unknown_keys *unknown, struct wr_error *error)
{
    struct wr_source **last = first;
    *first = NULL;
    for (size_t i = 0; i < config->source_count; i++) {
        *last = make_one(runtime, types, config, &config->sources[i], unknown, error);
        if (!*last) {
            wr_sources_free(*first);
            return false;
        }
        last = &(*last)->next;
    }
    return true;
}

static void *plan(struct wr_source_hooks *hooks, const struct wr_config *config, struct wr_error *error)
{
    struct sources *sources = (struct sources *)hooks;
    struct planned *planned = calloc(1, sizeof *planned);
    if (!planned)
        wr_error_no_memory(error, NULL);
    else if (wr_sources_make(sources->runtime, &sources->types, config, &planned->first, &planned->unknown,
                             error))
        return planned;
    if (planned)
        wr_unknown_keys_fini(&planned->unknown);
    free(planned);
    return NULL;
}

static void discard(void *plan)
{
    struct planned *planned = plan;
    wr_sources_free(planned->first);
    wr_unknown_keys_fini(&planned->unknown);
    free(planned);
}

/* ---- Starting and stopping ------------------------------------------------------------------- */

static void note_end(void *ctx)
{
    struct sources *sources = ctx;
    wr_lock_enter(&sources->lock);
    wr_condition_wake(&sources->ends);
    wr_lock_leave(&sources->lock);
}

static bool has_ended(const struct wr_source *source)
{
    uint32_t state = atomic_load(&source->state);
    return !source->is_started || state == WEIR_SOURCE_ENDED || state == WEIR_SOURCE_BROKEN ||
           state == WEIR_SOURCE_STOPPED;
}

/* [changing] Stops the sources of a list, and waits for them. Returns how many have not ended by deadline_ns.
 */
static unsigned stop_list(struct sources *sources, struct wr_source *list, int64_t deadline_ns)
{
    unsigned stuck = 0;
    for (struct wr_source *source = list; source; source = source->next)
        wr_source_request_stop(source);
    for (struct wr_source *source = list; source; source = source->next) {
        wr_lock_enter(&sources->lock);
        while (!has_ended(source) && wr_clock_monotonic_ns() < deadline_ns)
            wr_condition_wait(&sources->ends, &sources->lock, deadline_ns);
        wr_lock_leave(&sources->lock);
        if (wr_source_join(source, deadline_ns)) {
            wr_source_destroy(source);
            continue;
        }
        stuck++;
        wr_log_write(&sources->runtime->log, WEIR_LOG_ERROR, "%s: does not stop; it is left behind",
                     source->shown.name);
    }
    return stuck;
}

/* [changing] Stops and frees sources that are in no list any more; those that do not stop are kept. */
static void end_all(struct sources *sources, struct wr_source *list, int64_t deadline_ns)
{
    stop_list(sources, list, deadline_ns);
    while (list) {
        struct wr_source *source = list;
        list = list->next;
        if (source->is_started) {
            source->next = sources->stuck;
            sources->stuck = source;
        } else {
            wr_source_free(source);
        }
    }
}

/* [changing] Takes the source that equals another one out of the list. NULL: there is none. */
static struct wr_source *take_equal(struct sources *sources, const struct wr_source *like)
{
    struct wr_source **at = &sources->first, *found = NULL;
    wr_lock_enter(&sources->lock);
    while (*at && (has_ended(*at) || strcmp((*at)->identity, like->identity) != 0))
        at = &(*at)->next;
    if (*at) {
        found = *at;
        *at = found->next;
    }
    wr_lock_leave(&sources->lock);
    return found;
}

static struct wr_source *replace_list(struct sources *sources, struct wr_source *list)
{
    wr_lock_enter(&sources->lock);
    struct wr_source *before = sources->first;
    sources->first = list;
    wr_lock_leave(&sources->lock);
    return before;
}

/* [changing] The sources that go on, and the new ones, in the order of the configuration. */
static struct wr_source *choose(struct sources *sources, struct wr_source *made)
{
    struct wr_source *chosen = NULL, **last = &chosen;
    while (made) {
        struct wr_source *source = made, *same = take_equal(sources, made);
        made = made->next;
        if (same) {
            wr_source_free(source);
            source = same;
        }
        source->next = NULL;
        *last = source;
        last = &source->next;
    }
    return chosen;
}

/* [changing] One that cannot be started is left as it is, with a message. */
static void start_new(struct sources *sources, struct wr_source *list)
{
    struct wr_error error;
    for (; list; list = list->next)
        if (!list->is_started && !wr_source_start(list, note_end, sources, &error)) {
            atomic_store(&list->state, WEIR_SOURCE_BROKEN);
            wr_log_write(&sources->runtime->log, WEIR_LOG_ERROR, "%s", error.text);
        }
}

static void set_committing(struct sources *sources, bool is_committing)
{
    wr_lock_enter(&sources->lock);
    sources->is_committing = is_committing;
    wr_condition_wake(&sources->ends);
    wr_lock_leave(&sources->lock);
}

static int64_t stop_deadline(const struct sources *sources)
{
    uint64_t generation;
    struct wr_config *config = wr_engine_config(wr_runtime_engine(sources->runtime), &generation);
    int64_t deadline_ns = wr_clock_monotonic_ns() + config->settings.shutdown_timeout_ns;
    wr_config_drop(config);
    return deadline_ns;
}

static void commit(struct wr_source_hooks *hooks, void *plan, uint64_t generation)
{
    struct sources *sources = (struct sources *)hooks;
    struct planned *planned = plan;
    wr_lock_enter(&sources->changing);
    if (!sources->is_stopped && generation >= sources->generation) {
        sources->generation = generation;
        wr_unknown_keys_log(&planned->unknown, &sources->runtime->log);
        set_committing(sources, true);
        struct wr_source *chosen = choose(sources, planned->first);
        planned->first = NULL;
        end_all(sources, replace_list(sources, NULL), stop_deadline(sources));
        start_new(sources, chosen);
        replace_list(sources, chosen);
        set_committing(sources, false);
    }
    wr_lock_leave(&sources->changing);
    discard(plan);
}

/* ---- The process ----------------------------------------------------------------------------- */

static bool stop_all(struct wr_source_hooks *hooks, int64_t deadline_ns)
{
    struct sources *sources = (struct sources *)hooks;
    if (!wr_lock_enter_by(&sources->changing, deadline_ns))
        return false;
    sources->is_stopped = true;
    unsigned stuck = stop_list(sources, sources->first, deadline_ns); /* `changing` alone changes the list */
    wr_lock_leave(&sources->changing);
    return !stuck;
}

/* [fork] Other threads may have been changing the list: it is read as it is, without locks, and each link in it
 * leads to a source or to none. */
static void abandon_all(struct wr_source_hooks *hooks)
{
    const struct sources *sources = (const struct sources *)hooks;
    for (const struct wr_source *source = sources->first; source; source = source->next)
        wr_source_abandon(source);
}

static bool read_stats(struct wr_source_hooks *hooks, size_t index, weir_source_stats *stats)
{
    struct sources *sources = (struct sources *)hooks;
    wr_lock_enter(&sources->lock);
    const struct wr_source *source = sources->first;
    for (size_t i = 0; source && i < index; i++)
        source = source->next;
    if (source)
        wr_source_read_stats(source, stats);
    wr_lock_leave(&sources->lock);
    return source;
}

static struct sources *make(struct wr_runtime *runtime)
{
    struct sources *sources = calloc(1, sizeof *sources);
    if (sources)
        *sources = (struct sources){.hooks = {plan, commit, discard, stop_all, abandon_all, read_stats},
                                    .runtime = runtime,
                                    .is_stopped = true};
    return sources;
}

/* The one set of the process. Two threads may start at once: one of their sets stays. */
static struct sources *get_or_make(struct wr_runtime *runtime)
{
    struct wr_source_hooks *present = NULL;
    struct sources *made = make(runtime);
    if (!made || atomic_compare_exchange_strong(&runtime->source_hooks, &present, &made->hooks))
        return made;
    free(made);
    return (struct sources *)present;
}

static void allow(struct sources *sources)
{
    wr_lock_enter(&sources->changing);
    sources->is_stopped = false;
    wr_lock_leave(&sources->changing);
}

/* Another thread may put a configuration in force that it planned before the sources were there: repeated until
 * they are those of the latest one. */
static int follow(struct sources *sources, struct wr_error *error)
{
    struct wr_engine *engine = wr_runtime_engine(sources->runtime);
    uint64_t generation;
    do {
        struct wr_config *config = wr_engine_config(engine, &generation);
        void *planned = plan(&sources->hooks, config, error);
        wr_config_drop(config);
        if (!planned)
            return error->code;
        allow(sources);
        commit(&sources->hooks, planned, generation);
    } while (atomic_load(&engine->generation) != generation);
    return 0;
}

int wr_sources_start(struct wr_runtime *runtime, struct wr_error *error)
{
    int result = wr_configure_start(runtime, error);
    if (result)
        return result;
    if (atomic_load(&runtime->producers.closed))
        return wr_error_set(error, WEIR_ERR_CLOSED, "weir has been shut down");
    struct sources *sources = get_or_make(runtime);
    if (!sources) {
        wr_error_no_memory(error, NULL);
        return error->code;
    }
    return follow(sources, error);
}

static struct sources *find(struct wr_runtime *runtime)
{
    return (struct sources *)atomic_load(&runtime->source_hooks);
}

int wr_sources_stop(struct wr_runtime *runtime, int64_t deadline_ns, struct wr_error *error)
{
    struct sources *sources = find(runtime);
    if (!sources || stop_all(&sources->hooks, deadline_ns))
        return 0;
    return wr_error_set(error, WEIR_ERR_TIMEOUT, "not all sources have stopped in time");
}

static bool all_ended(const struct sources *sources)
{
    for (const struct wr_source *source = sources->first; source; source = source->next)
        if (!has_ended(source))
            return false;
    return !sources->is_committing;
}

int wr_sources_wait(struct wr_runtime *runtime, int64_t deadline_ns, struct wr_error *error)
{
    struct sources *sources = find(runtime);
    bool ended = true;
    if (!sources)
        return 0;
    wr_lock_enter(&sources->lock);
    while (!(ended = all_ended(sources)) && wr_clock_monotonic_ns() < deadline_ns)
        wr_condition_wait(&sources->ends, &sources->lock, deadline_ns);
    wr_lock_leave(&sources->lock);
    return ended ? 0 : wr_error_set(error, WEIR_ERR_TIMEOUT, "not all sources have ended");
}

bool wr_sources_read_stats(struct wr_runtime *runtime, size_t index, weir_source_stats *stats)
{
    struct sources *sources = find(runtime);
    return sources && read_stats(&sources->hooks, index, stats);
}
