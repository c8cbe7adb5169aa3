#include "source/sources.h"

#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "os/lock.h"
#include "os/thread.h"
#include "runtime/configure.h"
#include "runtime/runtime.h"
#include "source/levels.h"
#include "source/source.h"
#include "text/error.h"

/* Lock order: changing, then the round lock (of wr_source_start and wr_source_join), or lock. */
/* A name that the program was told: it stays valid after its source. */
struct told_name {
    struct told_name *next;
    char text[];
};

struct sources {
    struct wr_source_hooks hooks; /* first: it leads here */
    struct wr_runtime *runtime;
    struct wr_lock changing;  /* held by a thread that starts and stops sources */
    struct wr_lock lock;      /* for the list */
    struct wr_condition ends; /* signalled when a source's thread ends; with lock */
    struct wr_source *first;  /* those of the configuration in force; with lock */
    struct told_name *told;   /* with lock */

    /* All that were started and not freed, in whatever list they are: those that are ending, too, and those
     * that did not stop in time, which are never freed. Changed with `changing`. A child that is forked at any
     * moment reads it without a lock: a source is put in front with its link set, before it opens anything, and
     * taken out by one store, before it is freed. */
    struct wr_source *_Atomic started;

    struct wr_levels levels; /* has a lock of its own, taken last but for those of adding */

    struct wr_unknown_keys logged; /* the unknown keys that were logged last; with `changing` */
    uint64_t generation;           /* of the configuration that they are of; with `changing` */
    bool is_stopped;
    bool is_committing; /* sources of the list are not started yet; with lock */
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

static struct wr_source *make_one(struct wr_runtime *runtime, const struct wr_config *config,
                                  const struct wr_config_handler *given, struct wr_unknown_keys *unknown,
                                  struct wr_error *error)
{
    struct wr_error problem = {0};
    struct wr_type *type =
        wr_plugins_find(&runtime->plugins, &wr_plugins_sources, given->type, given->plugin, &problem);
    if (type)
        return wr_source_new(runtime, type, config, given, unknown, error);
    const struct wr_node *at = wr_node_member(given->node, given->plugin ? "plugin" : "type");
    wr_node_error(at, error, "%s", problem.text);
    error->code = problem.code;
    return NULL;
}

bool wr_sources_make(struct wr_runtime *runtime, const struct wr_config *config, struct wr_source **first,
                     struct wr_unknown_keys *unknown, struct wr_error *error)
{
    struct wr_source **last = first;
    *first = NULL;
    for (size_t i = 0; i < config->source_count; i++) {
        *last = make_one(runtime, config, &config->sources[i], unknown, error);
        if (!wr_problems_go_on(config->problems, *last, error)) {
            wr_sources_free(*first);
            *first = NULL;
            return false;
        }
        if (*last)
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
    else if (wr_sources_make(sources->runtime, config, &planned->first, &planned->unknown, error))
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

static void request_stops(struct wr_source *list)
{
    for (struct wr_source *source = list; source; source = source->next)
        wr_source_request_stop(source);
}

/* [changing] Waits until a source that was asked to stop has, and keeps it for its counts alone. Returns false
 * if it has not ended by deadline_ns. */
static bool await_end(struct sources *sources, struct wr_source *source, int64_t deadline_ns)
{
    wr_lock_enter(&sources->lock);
    while (!has_ended(source) && wr_clock_monotonic_ns() < deadline_ns)
        wr_condition_wait(&sources->ends, &sources->lock, deadline_ns);
    wr_lock_leave(&sources->lock);
    if (!wr_source_join(source, deadline_ns))
        return false;
    wr_source_destroy(source);
    source->is_left = false;
    return true;
}

static void note_started(struct sources *sources, struct wr_source *source)
{
    atomic_store(&source->next_started, atomic_load(&sources->started));
    atomic_store(&sources->started, source);
}

static void forget_started(struct sources *sources, struct wr_source *source)
{
    struct wr_source *_Atomic *at = &sources->started;
    struct wr_source *other;
    while ((other = atomic_load(at)) && other != source)
        at = &other->next_started;
    if (other)
        atomic_store(at, atomic_load(&source->next_started));
}

/* [changing] It did not stop while it was waited for: now it is waited for no more. */
static void leave_behind(struct sources *sources, struct wr_source *source)
{
    wr_log_write(&sources->runtime->log, WEIR_LOG_ERROR, "%s: does not stop; it is left behind",
                 source->host_table.name);
    source->is_left = source->type->is_stuck = true;
}

/* [changing] The same for one that is not waited for. */
static void leave_unawaited(struct sources *sources, struct wr_source *source)
{
    wr_log_write(
        &sources->runtime->log, WEIR_LOG_ERROR,
        "%s: is left behind until it ends: it is not waited for, as a source of the type \"%s\" did not "
        "stop before",
        source->host_table.name, source->type->is.name);
    source->is_left = true;
}

/* [changing] Stops the sources of the list, and waits for them, unless they were left behind before. Returns
 * how many have not ended by deadline_ns. */
static unsigned stop_list(struct sources *sources, int64_t deadline_ns)
{
    unsigned stuck = 0;
    bool waits = wr_clock_monotonic_ns() < deadline_ns;
    request_stops(sources->first); /* `changing` alone changes the list */
    for (struct wr_source *source = sources->first; source; source = source->next) {
        if (await_end(sources, source, source->is_left ? 0 : deadline_ns))
            continue;
        stuck++;
        if (waits && !source->is_left)
            leave_behind(sources, source);
    }
    return stuck;
}

/* [changing] Stops and frees sources that are not of the configuration any more. One that does not stop is left
 * behind; until it ends, a configuration waits for no other one of its type. */
static void end_all(struct sources *sources, struct wr_source *list, int64_t deadline_ns)
{
    request_stops(list);
    while (list) {
        struct wr_source *source = list;
        bool waits = !source->type->is_stuck;
        list = list->next;
        if (await_end(sources, source, waits ? deadline_ns : 0)) {
            forget_started(sources, source);
            wr_source_free(source);
        } else if (waits) {
            leave_behind(sources, source);
        } else if (!source->is_left) {
            leave_unawaited(sources, source);
        }
    }
}

static bool is_in(const struct wr_source *list, const struct wr_source *source)
{
    while (list && list != source)
        list = list->next;
    return list;
}

/* [changing] Frees those that were left behind and have ended since, but for those that are about to be freed
 * with the list `ending`. */
static void end_left(struct sources *sources, const struct wr_source *ending)
{
    struct wr_source *next;
    for (struct wr_source *source = atomic_load(&sources->started); source; source = next) {
        next = atomic_load(&source->next_started);
        if (!source->is_left)
            continue;
        source->type->is_stuck = false;
        if (has_ended(source) && await_end(sources, source, WR_NEVER) && !is_in(ending, source)) {
            forget_started(sources, source);
            wr_source_free(source);
        }
    }
    for (struct wr_source *source = atomic_load(&sources->started); source;
         source = atomic_load(&source->next_started))
        source->type->is_stuck |= source->is_left;
}

static bool goes_on(const struct wr_source *source)
{
    return !has_ended(source) && !atomic_load(&source->stopping);
}

/* Caller holds the lock. Takes the source that equals another one and goes on out of the list. NULL: there is
 * none. */
static struct wr_source *take_equal(struct sources *sources, const struct wr_source *like)
{
    struct wr_source **at = &sources->first, *found;
    while (*at && (!goes_on(*at) || strcmp((*at)->identity, like->identity) != 0))
        at = &(*at)->next;
    found = *at;
    if (found)
        *at = found->next;
    return found;
}

/* [changing] Makes the list that of the sources that go on, and of the new ones, in the order of the
 * configuration. *unused: gets those that were made and equal one that goes on. Returns those that have to end.
 */
static struct wr_source *replace_list(struct sources *sources, struct wr_source *made,
                                      struct wr_source **unused)
{
    struct wr_source *chosen = NULL, **last = &chosen;
    wr_lock_enter(&sources->lock);
    while (made) {
        struct wr_source *source = made, *same = take_equal(sources, made);
        made = made->next;
        if (same) {
            source->next = *unused;
            *unused = source;
            source = same;
        }
        source->next = NULL;
        *last = source;
        last = &source->next;
    }
    struct wr_source *ending = sources->first;
    sources->first = chosen;
    sources->is_committing = true;
    wr_lock_leave(&sources->lock);
    return ending;
}

/* [changing] One that cannot be started is left as it is, with a message. */
static void start_new(struct sources *sources, struct wr_source *list)
{
    struct wr_error error;
    for (; list; list = list->next) {
        if (list->is_started)
            continue;
        note_started(sources, list);
        if (wr_source_start(list, note_end, sources, &error))
            continue;
        atomic_store(&list->state, WEIR_SOURCE_BROKEN);
        wr_log_write(&sources->runtime->log, WEIR_LOG_ERROR, "%s", error.text);
    }
}

static void end_committing(struct sources *sources)
{
    wr_lock_enter(&sources->lock);
    sources->is_committing = false;
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

/* Once for each configuration, however often it is put in force. The sources take the keys over. */
static void log_unknown_keys(struct sources *sources, struct wr_unknown_keys *keys)
{
    if (wr_unknown_keys_equal(keys, &sources->logged))
        return;
    wr_unknown_keys_log(keys, &sources->runtime->log);
    wr_unknown_keys_fini(&sources->logged);
    sources->logged = *keys;
    *keys = (struct wr_unknown_keys){0};
}

static void commit(struct wr_source_hooks *hooks, void *plan, uint64_t generation)
{
    struct sources *sources = (struct sources *)hooks;
    struct planned *planned = plan;
    wr_lock_enter(&sources->changing);
    if (!sources->is_stopped && generation >= sources->generation) {
        sources->generation = generation;
        log_unknown_keys(sources, &planned->unknown);
        struct wr_source *unused = NULL, *ending = replace_list(sources, planned->first, &unused);
        planned->first = NULL;
        wr_sources_free(unused);
        end_left(sources, ending);
        end_all(sources, ending, stop_deadline(sources));
        start_new(sources, sources->first); /* `changing` alone changes the list */
        end_committing(sources);
    }
    wr_lock_leave(&sources->changing);
    discard(plan);
}

/* ---- The process ----------------------------------------------------------------------------- */

struct stop {
    struct sources *sources;
    int64_t deadline_ns;
    bool is_done;
};

static void run_stop(void *argument)
{
    struct stop *stop = argument;
    struct sources *sources = stop->sources;
    if (!wr_lock_enter_by(&sources->changing, stop->deadline_ns))
        return;
    sources->is_stopped = true;
    stop->is_done = stop_list(sources, stop->deadline_ns) == 0;
    wr_lock_leave(&sources->changing);
}

/* Destroys sources with enough stack. */
static bool stop_all(struct wr_source_hooks *hooks, int64_t deadline_ns)
{
    struct stop stop = {.sources = (struct sources *)hooks, .deadline_ns = deadline_ns};
    wr_thread_run_roomy(run_stop, &stop);
    return stop.is_done;
}

static void reload_all(struct wr_source_hooks *hooks)
{
    struct sources *sources = (struct sources *)hooks;
    wr_lock_enter(&sources->lock);
    for (struct wr_source *source = sources->first; source; source = source->next)
        wr_source_request_reload(source);
    wr_lock_leave(&sources->lock);
}

/* [fork] Other threads may have been starting and stopping sources: see `started`. */
static void abandon_all(struct wr_source_hooks *hooks)
{
    const struct sources *sources = (const struct sources *)hooks;
    for (const struct wr_source *source = atomic_load(&sources->started); source;
         source = atomic_load(&source->next_started))
        wr_source_abandon(source);
}

/* Caller holds the lock. NULL: there are not that many. */
static struct wr_source *source_at(const struct sources *sources, size_t index)
{
    struct wr_source *source = sources->first;
    for (size_t i = 0; source && i < index; i++)
        source = source->next;
    return source;
}

/* Called in the dispatcher's round, which a thread waits for that was interrupted while it held the lock, if
 * its signal handler adds a value and waits for its delivery: so this does not wait for the lock. */
static bool read_counts(struct wr_source_hooks *hooks, size_t index, struct wr_selfmetrics_source *out)
{
    struct sources *sources = (struct sources *)hooks;
    if (!wr_lock_enter_by(&sources->lock, 0))
        return false;
    struct wr_source *source = source_at(sources, index);
    if (source)
        wr_source_read_counts(source, out);
    wr_lock_leave(&sources->lock);
    return source;
}

static bool read_status(struct wr_source_hooks *hooks, size_t index, struct wr_status_source *out)
{
    struct sources *sources = (struct sources *)hooks;
    wr_lock_enter(&sources->lock);
    struct wr_source *source = source_at(sources, index);
    if (source)
        wr_source_read_status(source, out);
    wr_lock_leave(&sources->lock);
    return source;
}

static size_t read_senders(struct wr_source_hooks *hooks, size_t index, struct wr_status_sender *senders,
                           size_t room)
{
    struct sources *sources = (struct sources *)hooks;
    wr_lock_enter(&sources->lock);
    struct wr_source *source = source_at(sources, index);
    size_t count = source ? wr_source_senders_read(&source->senders, senders, room) : 0;
    wr_lock_leave(&sources->lock);
    return count;
}

static struct sources *make(struct wr_runtime *runtime)
{
    struct sources *sources = calloc(1, sizeof *sources);
    if (sources)
        *sources = (struct sources){.hooks = {plan, commit, discard, reload_all, stop_all, abandon_all,
                                              read_counts, read_status, read_senders},
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

struct start {
    struct sources *sources;
    struct wr_error *error;
    int result;
};

static void run_start(void *argument)
{
    struct start *start = argument;
    start->result = follow(start->sources, start->error);
}

/* Loads plugins, and creates sources, with enough stack. */
int wr_sources_start(struct wr_runtime *runtime, struct wr_error *error)
{
    int result = wr_configure_start(runtime, error);
    if (result)
        return result;
    if (atomic_load(&runtime->producers.closed))
        return wr_error_set(error, WEIR_ERR_CLOSED, "weir has been shut down");
    struct start start = {.sources = get_or_make(runtime), .error = error};
    if (!start.sources) {
        wr_error_no_memory(error, NULL);
        return error->code;
    }
    wr_thread_run_roomy(run_start, &start);
    return start.result;
}

static struct sources *find(struct wr_runtime *runtime)
{
    return (struct sources *)atomic_load(&runtime->source_hooks);
}

struct wr_levels *wr_sources_levels(struct wr_runtime *runtime)
{
    struct sources *sources = find(runtime);
    return sources ? &sources->levels : NULL;
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

bool wr_sources_read_stats(struct wr_runtime *runtime, const char *name, weir_source_stats *stats)
{
    struct sources *sources = find(runtime);
    if (!sources)
        return false;
    wr_lock_enter(&sources->lock);
    struct wr_source *source = sources->first;
    while (source && strcmp(source->host_table.name, name) != 0)
        source = source->next;
    if (source)
        wr_source_read_stats(source, stats);
    wr_lock_leave(&sources->lock);
    return source;
}

/* Caller holds the lock. Returns NULL if out of memory. */
static const char *tell_name(struct sources *sources, const char *name)
{
    size_t bytes = strlen(name) + 1;
    struct told_name *told = sources->told;
    while (told && strcmp(told->text, name) != 0)
        told = told->next;
    if (!told && (told = malloc(sizeof *told + bytes))) {
        memcpy(told->text, name, bytes);
        told->next = sources->told;
        sources->told = told;
    }
    return told ? told->text : NULL;
}

const char *wr_sources_name(struct wr_runtime *runtime, size_t index)
{
    struct sources *sources = find(runtime);
    if (!sources)
        return NULL;
    wr_lock_enter(&sources->lock);
    const struct wr_source *source = source_at(sources, index);
    const char *name = source ? tell_name(sources, source->host_table.name) : NULL;
    wr_lock_leave(&sources->lock);
    return name;
}
