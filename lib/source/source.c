#include "source/source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "handler/prepare.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/thread.h"
#include "os/thread_state.h"
#include "registry/labels.h"
#include "registry/labels_walk.h"
#include "registry/name.h"
#include "registry/reuse.h"
#include "runtime/runtime.h"
#include "source/source_host.h"
#include "source/source_text.h"
#include "text/buffer.h"
#include "text/error.h"
#include "text/utf8.h"

/* ---- Options --------------------------------------------------------------------------------- */

/* A label of a variable, unless there is one with its key. Copied: the source may outlive the environment, with
 * its configuration. Returns false if out of memory. */
static bool add_variable(struct wr_source *source, weir_label *items, const char *name, const char *value)
{
    weir_map *labels = &source->options.labels;
    char *key = wr_region_text(&source->keep, name, (size_t)(value - name) - 1);
    const char *kept = wr_region_text(&source->keep, value, strlen(value));
    if (!key || !kept)
        return false;
    for (char *c = key; *c; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    if (!wr_labels_find(items, labels->count, key))
        items[labels->count++] = (weir_label){key, kept};
    return true;
}

/* Labels of the environment: the rest of the variable's name in lower case. Those of the option take
 * precedence. Returns false with the error set. */
static bool add_variables(struct wr_source *source, const struct wr_prepare_options *from)
{
    weir_map *labels = &source->options.labels;
    const char *prefix = source->options.label_variables;
    const struct wr_environment *environment = wr_prepare_environment(from);
    size_t most = labels->count, length = prefix ? strlen(prefix) : 0;
    for (size_t i = 0; prefix && environment->entries[i]; i++)
        most++;
    weir_label *items = most > labels->count ? wr_region_alloc(&source->keep, most * sizeof *items) : NULL;
    if (most == labels->count)
        return true;
    if (!items)
        return wr_error_no_memory(from->error, NULL);
    for (size_t i = 0; i < labels->count; i++)
        items[i] = labels->items[i];
    labels->items = items;
    for (size_t i = 0; environment->entries[i]; i++) {
        const char *entry = environment->entries[i], *value = strchr(entry, '=');
        if (strncmp(entry, prefix, length) != 0 || !value || value <= entry + length)
            continue;
        if (!add_variable(source, items, entry + length, value + 1))
            return wr_error_no_memory(from->error, NULL);
    }
    return true;
}

/* Checked here, and not with each record. */
static bool check_labels(const struct wr_source *source, const struct wr_prepare_options *from)
{
    struct wr_error problem = {0};
    const struct wr_node *at = wr_node_member(from->given->node, "labels");
    if (wr_labels_check(&source->options.labels, &problem))
        return true;
    return wr_node_error(at ? at : from->given->node, from->error, "%s", problem.text);
}

static bool refuse_group(const struct wr_prepare_options *from, const char *option, const char *format,
                         const struct wr_error *problem)
{
    const struct wr_node *at = wr_node_member(from->given->node, option);
    return wr_node_error(at ? at : from->given->node, from->error, format, problem->text);
}

/* Of values that come without a group: else all of them would be refused. */
static bool check_own_group(const struct wr_source *source, const struct wr_prepare_options *from)
{
    struct wr_error problem = {0};
    struct wr_buffer group = {0};
    const char *text = wr_source_host_put_group(&group, source, NULL);
    bool is_valid = text && wr_name_check_group(text, &problem);
    wr_buffer_fini(&group);
    if (is_valid)
        return true;
    if (!text)
        return wr_error_no_memory(from->error, NULL);
    if (source->options.group)
        return refuse_group(from, "group", "%s", &problem);
    return refuse_group(from, "group_prefix", "without the option group the source's name is its group: %s",
                        &problem);
}

static bool check_groups(const struct wr_source *source, const struct wr_prepare_options *from)
{
    struct wr_error problem = {0};
    const struct wr_source_options *options = &source->options;
    if (options->group && !wr_name_check_group(options->group, &problem))
        return refuse_group(from, "group", "%s", &problem);
    if (options->group_prefix && !wr_name_check_group(options->group_prefix, &problem))
        return refuse_group(from, "group_prefix", "%s", &problem);
    bool have_groups =
        !(source->type->is.flags & WEIR_SOURCE_TYPE_UNGROUPED) || wr_source_text_has_groups(source);
    return (!options->group && have_groups) || check_own_group(source, from);
}

/* `parse` and `patterns` need each other. */
static bool load_patterns(struct wr_source *source, const struct wr_prepare_options *from, bool are_inline)
{
    const struct wr_node *node = from->given->node, *member = wr_node_member(node, "patterns");
    bool are_given = are_inline || source->options.patterns;
    if (wr_source_options_has_patterns(&source->options) && are_given)
        return wr_source_patterns_load(&source->patterns, &source->runtime->plugins, node,
                                       source->options.patterns, from->error);
    if (are_given)
        wr_node_error(member ? member : node, from->error, "only with \"parse\": \"patterns\"");
    else if (wr_source_options_has_patterns(&source->options))
        wr_node_error(node, from->error,
                      "\"parse\": \"patterns\" needs the option patterns: a file, the preset nginx, or "
                      "an array of patterns");
    else
        return true;
    return false;
}

static bool fill_options(struct wr_source *source, struct wr_prepare_options *from)
{
    struct wr_source_options *options = &source->options;
    bool are_inline = source->type->is.flags & WEIR_SOURCE_TYPE_PARSES &&
                      wr_source_patterns_are_inline(wr_node_member(from->given->node, "patterns"));
    const char *const others[] = {"type", "plugin", are_inline ? "patterns" : NULL, NULL};
    bool set = wr_prepare_commons(from) && wr_prepare_given(from, others);
    source->own_options = from->own;
    return set && wr_prepare_check_retry(from, options->retry_min_ns, &options->retry_max_ns) &&
           add_variables(source, from) && check_labels(source, from) &&
           load_patterns(source, from, are_inline) && check_groups(source, from);
}

static bool set_identity(struct wr_source *source, const struct wr_prepare_options *from)
{
    struct wr_buffer text = {0};
    wr_buffer_put_format(&text, "%s ", source->host_table.name);
    wr_prepare_put_identity(&text, from);
    wr_buffer_put_text(&text, source->patterns.text ? source->patterns.text : "");
    source->identity = wr_buffer_take(&text);
    return source->identity || wr_error_no_memory(from->error, NULL);
}

/* ---- The state of threads -------------------------------------------------------------------- */

static void log_breach(const struct wr_source *source, const char *breach)
{
    wr_prepare_log_breach(source->type, source->host_table.name, breach, &source->runtime->log);
}

/* ---- Making one ------------------------------------------------------------------------------ */

bool wr_source_create(struct wr_source *source, const struct wr_node *node, struct wr_error *error)
{
    *error = (struct wr_error){0};
    if (!wr_prepare(source->type, source->host_table.name, node, &source->runtime->log, error))
        return false;
    source->refusal = error;
    source->node = node;
    source->self =
        wr_prepare_create(source->type, &source->host_table, source->own_options, &source->breach, error);
    source->refusal = NULL;
    source->node = NULL; /* its document may go before the source does */
    log_breach(source, source->breach);
    return source->self;
}

struct wr_source *wr_source_prepare(struct wr_runtime *runtime, struct wr_type *type,
                                    const struct wr_config *config, const struct wr_config_handler *given,
                                    struct wr_unknown_keys *unknown, struct wr_error *error)
{
    struct wr_source *source = calloc(1, sizeof *source);
    if (!source) {
        wr_error_no_memory(error, NULL);
        return NULL;
    }
    source->runtime = runtime;
    source->type = type;
    struct wr_prepare_options from = {
        .config = config,
        .given = given,
        .type = type,
        .all = wr_source_options_table(true),
        .common = wr_source_options_table(type->is.flags & WEIR_SOURCE_TYPE_PARSES),
        .commons = &source->options,
        .keep = &source->keep,
        .unknown = unknown,
        .error = error,
    };
    wr_wake_pair_init(&source->wake);
    const char *name = wr_region_text(&source->keep, given->name, strlen(given->name));
    if (name) {
        wr_source_host_init(source, name);
        if (fill_options(source, &from) && set_identity(source, &from))
            return source;
    } else {
        wr_error_no_memory(error, NULL);
    }
    wr_source_free(source);
    return NULL;
}

struct wr_source *wr_source_new(struct wr_runtime *runtime, struct wr_type *type,
                                const struct wr_config *config, const struct wr_config_handler *given,
                                struct wr_unknown_keys *unknown, struct wr_error *error)
{
    struct wr_source *source = wr_source_prepare(runtime, type, config, given, unknown, error);
    if (!source || wr_source_create(source, given->node, error))
        return source;
    wr_source_free(source);
    return NULL;
}

void wr_source_destroy(struct wr_source *source)
{
    if (source->self)
        wr_prepare_destroy(source->type, source->host_table.name, source->self, &source->runtime->log);
    source->self = NULL;
}

void wr_source_free(struct wr_source *source)
{
    if (!source)
        return;
    wr_source_destroy(source);
    wr_wake_pair_close(&source->wake);
    if (source->identity)
        explicit_bzero(source->identity, strlen(source->identity));
    free(source->identity);
    for (uint32_t i = 0; i < source->names.count; i++)
        wr_reuse_let_go(source->names.items[i].metric->stream);
    wr_source_names_fini(&source->names);
    wr_source_marks_fini(&source->marks);
    wr_source_senders_fini(&source->senders);
    wr_source_sets_fini(&source->sets);
    wr_source_patterns_fini(&source->patterns);
    wr_buffer_fini(&source->group);
    free(source->labels);
    free(source->values);
    free(source->metrics);
    wr_region_fini(&source->keep);
    free(source);
}

/* ---- The thread ------------------------------------------------------------------------------ */

static void set_state(struct wr_source *source, enum weir_source_state state)
{
    atomic_store(&source->state, state);
}

/* ---- Failures -------------------------------------------------------------------------------- */

enum { REMINDER_S = 60 };

static void set_last_error(struct wr_source *source, const char *reason)
{
    wr_lock_enter(&source->error_lock);
    wr_utf8_show_part(source->last_error, sizeof source->last_error, reason);
    source->last_error_ns = wr_clock_monotonic_ns();
    wr_lock_leave(&source->error_lock);
}

/* It tries again. */
static void note_failure(struct wr_source *source, const char *reason)
{
    int64_t now_ns = wr_clock_monotonic_ns();
    set_last_error(source, reason);
    source->works_at_ns = WR_NEVER;
    if (atomic_load(&source->stopping))
        return;
    if (!source->is_failing) {
        source->is_failing = true;
        source->failing_since_ns = now_ns;
        wr_log_write(&source->runtime->log, WEIR_LOG_WARNING, "%s: %s; trying again", source->host_table.name,
                     reason);
    } else if (now_ns >= source->reminder_ns) {
        wr_log_write(&source->runtime->log, WEIR_LOG_WARNING, "%s: still failing after %" PRId64 " s: %s",
                     source->host_table.name, (now_ns - source->failing_since_ns) / WR_NS_PER_S, reason);
    } else {
        return;
    }
    source->reminder_ns = now_ns + REMINDER_S * WR_NS_PER_S;
}

void wr_source_works(struct wr_source *source)
{
    if (!source->is_failing)
        return;
    source->is_failing = false;
    wr_log_write(&source->runtime->log, WEIR_LOG_WARNING, "%s: back after %" PRId64 " s",
                 source->host_table.name, (wr_clock_monotonic_ns() - source->failing_since_ns) / WR_NS_PER_S);
}

/* ---- The thread's calls ---------------------------------------------------------------------- */

/* Calls a callback. Returns its code, which is valid; an invalid one is FAILED. */
static int call(struct wr_source *source, void (*callback)(void *self, weir_outcome *outcome),
                weir_outcome *outcome)
{
    *outcome = (weir_outcome){.size = sizeof *outcome};
    atomic_store(&source->hurried, false); /* not after the call: a reload meanwhile asks for another one */
    struct wr_thread_state thread_state = wr_thread_state_save();
    callback(source->self, outcome);
    outcome->reason[sizeof outcome->reason - 1] = '\0';
    if (!outcome->reason[0])
        snprintf(outcome->reason, sizeof outcome->reason, "no reason given");
    log_breach(source, wr_thread_state_restore(&thread_state));
    if (outcome->code == WEIR_OUTCOME_OK || outcome->code == WEIR_OUTCOME_RETRY ||
        outcome->code == WEIR_OUTCOME_REOPEN || outcome->code == WEIR_OUTCOME_FAILED)
        return outcome->code;
    snprintf(outcome->reason, sizeof outcome->reason, "the source type is at fault: %d is not a result",
             outcome->code);
    return WEIR_OUTCOME_FAILED;
}

/* Returns false if a stop is requested. */
static bool back_off(struct wr_source *source, const weir_outcome *outcome)
{
    int64_t pause_ns = wr_backoff_fail(&source->backoff, wr_backoff_requested_ns(outcome->retry_after_ms));
    note_failure(source, outcome->reason);
    set_state(source, WEIR_SOURCE_WAITING);
    source->is_backing_off = true;
    bool goes_on = wr_source_host_pause(source, wr_clock_monotonic_ns() + pause_ns);
    source->is_backing_off = false;
    return goes_on;
}

/* Adds what sets have counted. Until a stop is requested it waits for room, then for a second at most. */
static void end_sets(struct wr_source *source)
{
    enum { STEP_NS = 10 * WR_NS_PER_MS };
    int64_t left_ns = WR_NS_PER_S;
    while (!wr_source_sets_tend(source, true)) {
        if (wr_source_host_pause(source, wr_clock_monotonic_ns() + STEP_NS))
            continue;
        if ((left_ns -= STEP_NS) < 0) {
            wr_source_host_refuse(source, WR_SOURCE_FAULT_ROOM, source->sets.count - source->sets.reported,
                                  "there was no room for the counts of sets before the end");
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
    }
}

static void fail(struct wr_source *source, const weir_outcome *outcome)
{
    end_sets(source);
    set_last_error(source, outcome->reason);
    source->end_state = WEIR_SOURCE_BROKEN;
    wr_log_write(&source->runtime->log, WEIR_LOG_ERROR, "%s: %s; it has ended", source->host_table.name,
                 outcome->reason);
}

/* Returns whether it is open; else it has failed, or a stop is requested. */
static bool open_source(struct wr_source *source)
{
    weir_outcome outcome;
    while (!atomic_load(&source->stopping)) {
        if (!source->type->source.open)
            return true;
        switch (call(source, source->type->source.open, &outcome)) {
        case WEIR_OUTCOME_OK: return true;
        case WEIR_OUTCOME_FAILED: fail(source, &outcome); return false;
        default:
            if (!back_off(source, &outcome))
                return false;
        }
    }
    return false;
}

static void close_source(struct wr_source *source)
{
    struct wr_thread_state thread_state = wr_thread_state_save();
    if (source->type->source.close)
        source->type->source.close(source->self);
    log_breach(source, wr_thread_state_restore(&thread_state));
    wr_source_names_forget_left(&source->names);
}

/* Returns the code of the last call. */
static int run_open(struct wr_source *source, weir_outcome *outcome)
{
    for (;;) {
        int64_t start_ns = wr_clock_monotonic_ns();
        source->works_at_ns = start_ns + WR_SOURCE_WORKS_AFTER_NS;
        set_state(source, WEIR_SOURCE_RUNNING);
        int code = call(source, source->type->source.run, outcome);
        int64_t end_ns = wr_clock_monotonic_ns();
        bool has_ended = code == WEIR_OUTCOME_OK && !atomic_load(&source->stopping);
        if (has_ended || end_ns >= source->works_at_ns)
            wr_source_works(source);
        source->works_at_ns = WR_NEVER;
        if (code == WEIR_OUTCOME_OK || end_ns - start_ns > source->options.retry_max_ns)
            wr_backoff_succeed(&source->backoff);
        if (has_ended) {
            end_sets(source);
            source->end_state = WEIR_SOURCE_ENDED;
            wr_log_write(&source->runtime->log, WEIR_LOG_INFO, "%s: its input has ended",
                         source->host_table.name);
        }
        if (code == WEIR_OUTCOME_FAILED)
            fail(source, outcome);
        if (code == WEIR_OUTCOME_RETRY && back_off(source, outcome))
            continue;
        return code;
    }
}

static void *run(void *argument)
{
    struct wr_source *source = argument;
    char name[16] = "source:";
    strncat(name, source->host_table.name, sizeof name - strlen(name) - 1);
    wr_thread_set_name(name);
    for (bool again = true; again && open_source(source);) {
        weir_outcome outcome;
        int code = run_open(source, &outcome);
        close_source(source);
        again = code == WEIR_OUTCOME_REOPEN && back_off(source, &outcome); /* its place is free meanwhile */
    }
    if (source->end_state == WEIR_SOURCE_STOPPED)
        end_sets(source);
    set_state(source, source->end_state); /* who waits for it may rely on close having returned */
    source->on_end(source->ctx);
    return NULL;
}

/* ---- Starting and stopping ------------------------------------------------------------------- */

static bool fail_start(const struct wr_source *source, const char *what, int number, struct wr_error *error)
{
    return wr_error_refuse(error, WEIR_ERR_MEMORY, "%s: %s: %s", source->host_table.name, what,
                           wr_error_system_text(number));
}

static void set_waiter(struct wr_source *source, bool waits)
{
    struct wr_engine *engine = wr_runtime_engine(source->runtime);
    struct wr_visit visit;
    wr_engine_enter(engine, &visit);
    if (waits)
        wr_room_add(&engine->dispatcher.room_waiters, &source->room);
    else
        wr_room_remove(&engine->dispatcher.room_waiters, &source->room);
    wr_engine_leave(&visit);
}

bool wr_source_start(struct wr_source *source, void (*on_end)(void *ctx), void *ctx, struct wr_error *error)
{
    source->on_end = on_end;
    source->ctx = ctx;
    source->end_state = WEIR_SOURCE_STOPPED;
    if (!wr_wake_pair_open(&source->wake))
        return fail_start(source, "socketpair", errno, error);
    source->room.wake = &source->wake;
    wr_backoff_init(&source->backoff, source->options.retry_min_ns, source->options.retry_max_ns,
                    (uint64_t)wr_clock_monotonic_ns());
    set_waiter(source, true);
    source->is_started = true; /* before it opens anything, which a forked child has to close */
    if (wr_thread_start(run, source, &source->thread))
        return true;
    source->is_started = false;
    set_waiter(source, false);
    wr_wake_pair_close(&source->wake);
    return fail_start(source, "no thread can be started", EAGAIN, error);
}

void wr_source_request_stop(struct wr_source *source)
{
    atomic_store(&source->stopping, true);
    wr_wake_pair_wake(&source->wake);
}

void wr_source_request_reload(struct wr_source *source)
{
    atomic_store(&source->reload_wanted, true);
    atomic_store(&source->hurried, true);
    wr_wake_pair_wake(&source->wake);
}

bool wr_source_join(struct wr_source *source, int64_t deadline_ns)
{
    if (!source->is_started)
        return true;
    if (!wr_thread_join_by(source->thread, deadline_ns))
        return false;
    source->is_started = false;
    set_waiter(source, false);
    wr_wake_pair_close(&source->wake); /* a source that was stopped is kept for its counts alone */
    return true;
}

void wr_source_abandon(const struct wr_source *source)
{
    if (source->self && source->type->source.abandon && source->is_started)
        source->type->source.abandon(source->self);
    wr_connecting_abandon(&source->connecting);
    wr_wake_pair_abandon(&source->wake);
}

/* ---- What it has done ------------------------------------------------------------------------ */

void wr_source_read_stats(struct wr_source *source, weir_source_stats *stats)
{
    uint64_t added = atomic_load_explicit(&source->added, memory_order_acquire); /* before `lines` */
    *stats = (weir_source_stats){
        .size = sizeof *stats,
        .state = (int32_t)atomic_load(&source->state),
        .lines = atomic_load_explicit(&source->lines, memory_order_relaxed),
        .bad_lines = atomic_load_explicit(&source->bad_lines, memory_order_relaxed),
        .records = atomic_load_explicit(&source->records, memory_order_relaxed),
        .added = added,
        .refused = atomic_load_explicit(&source->refused, memory_order_relaxed),
        .bytes = atomic_load_explicit(&source->bytes, memory_order_relaxed),
    };
    snprintf(stats->name, sizeof stats->name, "%s", source->host_table.name);
    snprintf(stats->type, sizeof stats->type, "%s", source->type->is.name);
    wr_lock_enter(&source->error_lock);
    memcpy(stats->last_error, source->last_error, sizeof stats->last_error);
    int64_t age_ns = wr_clock_monotonic_ns() - source->last_error_ns;
    stats->last_error_ms = source->last_error_ns ? age_ns / WR_NS_PER_MS : -1;
    wr_lock_leave(&source->error_lock);
}

void wr_source_read_counts(struct wr_source *source, struct wr_selfmetrics_source *counts)
{
    wr_source_read_stats(source, &counts->stats);
    counts->is_text = source->type->is.flags & WEIR_SOURCE_TYPE_PARSES;
    counts->counter_count = atomic_load(&source->counter_count); /* before the names, which stay */
    for (size_t i = 0; i < counts->counter_count; i++) {
        struct wr_lane_counter *counter = &counts->counters[i];
        snprintf(counter->name, sizeof counter->name, "%s", source->counters[i].name);
        counter->value = atomic_load_explicit(&source->counters[i].value, memory_order_relaxed);
    }
}

/* What a source reads from elsewhere may be lost before it gets it, which it counts itself. */
static uint64_t count_lost(const struct wr_source *source)
{
    uint64_t lost = 0;
    uint32_t count = atomic_load(&source->counter_count);
    for (uint32_t i = 0; i < count; i++)
        if (strncmp(source->counters[i].name, "lost_", 5) == 0)
            lost += atomic_load_explicit(&source->counters[i].value, memory_order_relaxed);
    return lost;
}

void wr_source_read_status(struct wr_source *source, struct wr_status_source *status)
{
    weir_source_stats stats;
    wr_source_read_stats(source, &stats);
    *status = (struct wr_status_source){
        .state = stats.state,
        .lines = stats.lines,
        .bad_lines = stats.bad_lines,
        .records = stats.records,
        .added = stats.added,
        .refused = stats.refused,
        .lost = count_lost(source),
        .bytes = stats.bytes,
        .reason_ns = stats.last_error_ms < 0 ? -1 : stats.last_error_ms * WR_NS_PER_MS,
    };
    snprintf(status->name, sizeof status->name, "%s", stats.name);
    snprintf(status->type, sizeof status->type, "%s", stats.type);
    snprintf(status->reason, sizeof status->reason, "%s", stats.last_error);
}
