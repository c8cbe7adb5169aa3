#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/command.h"
#include "config/option.h"
#include "engine/plan.h"
#include "os/clock.h"
#include "os/lock.h"
#include "os/thread.h"
#include "source/source.h"
#include "text/buffer.h"
#include "text/common.h"
#include "text/units.h"
#include "text/utf8.h"

/* The handlers get less time than the whole, because their own timeout has the better message. Shorter secrets
 * are not masked: they occur in messages by chance. */
enum { GRACE_MS = 1000, SHORTEST_SECRET = 4 };

/* One handler or source, and the thread that tries it. */
struct probe {
    struct probes *all;
    const char *name, *remark; /* remark: behind the line */
    const struct wr_type *type;
    const void *options;
    void *self;
    int64_t timeout_ms;
    pthread_t thread;
    bool started;
    weir_outcome outcome;
    bool done; /* under the lock */
};

/* Not freed while a thread is running. */
struct probes {
    struct wr_lock lock;
    struct wr_condition change;
    size_t count;
    struct probe *items;
};

/* ---- Trying ---------------------------------------------------------------------------------- */

static bool is_source(const struct probe *probe)
{
    return probe->type->kind == &wr_plugins_sources;
}

static void open_and_close(const struct probe *probe, weir_outcome *outcome)
{
    const weir_handler_type *type = &probe->type->is;
    if (!type->open) {
        snprintf(outcome->reason, sizeof outcome->reason, "nothing to open");
        return;
    }
    type->open(probe->self, outcome);
    if (outcome->code != WEIR_OUTCOME_OK)
        return;
    outcome->reason[0] = '\0';
    if (type->close)
        type->close(probe->self);
}

static void *run(void *argument)
{
    struct probe *probe = argument;
    weir_outcome outcome = {.size = sizeof outcome, .code = WEIR_OUTCOME_OK};
    if (is_source(probe))
        probe->type->source.probe(probe->self, probe->timeout_ms, &outcome);
    else if (probe->type->is.probe)
        probe->type->is.probe(probe->self, probe->timeout_ms, &outcome);
    else
        open_and_close(probe, &outcome);
    wr_lock_enter(&probe->all->lock);
    probe->outcome = outcome;
    probe->done = true;
    wr_condition_wake(&probe->all->change);
    wr_lock_leave(&probe->all->lock);
    return NULL;
}

static void start(struct probe *probe)
{
    if (is_source(probe) && !probe->type->source.probe) {
        snprintf(probe->outcome.reason, sizeof probe->outcome.reason, "not tried");
        probe->done = true;
        return;
    }
    probe->started = wr_thread_start(run, probe, &probe->thread);
    if (probe->started)
        return;
    probe->outcome.code = WEIR_OUTCOME_RETRY;
    snprintf(probe->outcome.reason, sizeof probe->outcome.reason, "no thread could be started to try it");
    probe->done = true;
}

/* Returns whether it was done by the deadline. */
static bool wait_for(struct probe *probe, int64_t deadline_ns)
{
    wr_lock_enter(&probe->all->lock);
    while (!probe->done && wr_clock_monotonic_ns() < deadline_ns)
        wr_condition_wait(&probe->all->change, &probe->all->lock, deadline_ns);
    bool done = probe->done;
    wr_lock_leave(&probe->all->lock);
    if (done && probe->started)
        pthread_join(probe->thread, NULL);
    return done;
}

/* ---- Reporting ------------------------------------------------------------------------------- */

static void hide(char *text, const char *secret)
{
    size_t length = secret ? strlen(secret) : 0;
    if (length < SHORTEST_SECRET)
        return;
    for (char *found = strstr(text, secret); found; found = strstr(found + length, secret))
        memset(found, '*', length);
}

/* The reason may come from the destination, which knows the secrets. */
static void hide_secrets(const struct probe *probe, char *text)
{
    const weir_option *row;
    for (size_t i = 0; (row = wr_options_row(&probe->type->options, i)); i++) {
        const void *field = (const char *)probe->options + row->offset;
        if (!(row->flags & WEIR_OPTION_SECRET))
            continue;
        if (row->type == WEIR_OPTION_STRING || row->type == WEIR_OPTION_PATH)
            hide(text, *(const char *const *)field);
        const weir_map *map = row->type == WEIR_OPTION_MAP ? field : NULL;
        for (size_t j = 0; map && j < map->count; j++)
            hide(text, map->items[j].value);
    }
}

static void put_destination(struct wr_buffer *out, const struct probe *probe)
{
    const weir_option *row;
    const char *separator = " ";
    for (size_t i = 0; (row = wr_options_row(&probe->type->options, i)); i++) {
        if (!(row->flags & WEIR_OPTION_DESTINATION))
            continue;
        wr_buffer_put_text(out, separator);
        wr_option_show(row, probe->options, false, out);
        separator = ", ";
    }
}

static bool put_result(struct wr_buffer *out, struct probe *probe, bool done)
{
    char reason[sizeof probe->outcome.reason], units[WR_UNITS_ROOM];
    if (!done) {
        wr_buffer_put_format(out, ": no result within %s",
                             wr_units_put_duration(units, probe->timeout_ms * WR_NS_PER_MS));
        return false;
    }
    bool ok = probe->outcome.code == WEIR_OUTCOME_OK;
    bool is_tried = !is_source(probe) || probe->type->source.probe;
    probe->outcome.reason[sizeof probe->outcome.reason - 1] = '\0';
    hide_secrets(probe, probe->outcome.reason);
    wr_utf8_line(reason, sizeof reason, probe->outcome.reason);
    wr_buffer_put_text(out, ok && is_tried ? ": ok" : ": ");
    if (ok && is_tried && *reason)
        wr_buffer_put_text(out, ", ");
    wr_buffer_put_text(out, ok || *reason ? reason : "open failed without a reason");
    return ok;
}

static bool put_line(struct wr_buffer *out, struct probe *probe, bool done)
{
    wr_buffer_put_text(out, "  ");
    command_put_padded(out, probe->name, 14);
    wr_buffer_put_format(out, " %s", probe->type->is.name);
    put_destination(out, probe);
    bool ok = put_result(out, probe, done);
    wr_buffer_put_text(out, probe->remark);
    return ok;
}

/* ---- All ------------------------------------------------------------------------------------- */

static void add_all(struct probes *all, const struct wr_plan *plan, const struct wr_source *sources)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct wr_plan_handler *handler = &plan->handlers[i];
        all->items[all->count++] = (struct probe){
            .name = handler->name,
            .remark = handler->routed ? "\n" : "  (no route leads to it)\n",
            .type = handler->type,
            .options = handler->instance->options,
            .self = handler->instance->self,
        };
    }
    for (const struct wr_source *source = sources; source; source = source->next)
        all->items[all->count++] = (struct probe){
            .name = source->host_table.name,
            .remark = "\n",
            .type = source->type,
            .options = source->own_options,
            .self = source->self,
        };
}

static struct probes *make_probes(const struct wr_plan *plan, const struct wr_source *sources)
{
    size_t count = plan->count;
    for (const struct wr_source *source = sources; source; source = source->next)
        count++;
    struct probes *all = calloc(1, sizeof *all);
    if (!all || !(all->items = calloc(count + 1, sizeof *all->items)))
        command_out_of_memory();
    add_all(all, plan, sources);
    return all;
}

struct probe_result probe_all(const struct wr_plan *plan, const struct wr_source *sources, int64_t timeout_ns,
                              struct wr_buffer *out)
{
    int64_t timeout_ms = (timeout_ns + WR_NS_PER_MS - 1) / WR_NS_PER_MS;
    int64_t deadline_ns = wr_clock_deadline_ns(timeout_ms + GRACE_MS);
    struct probe_result result = {.reachable = true};
    struct probes *all = make_probes(plan, sources);
    for (size_t i = 0; i < all->count; i++) {
        all->items[i].all = all;
        all->items[i].timeout_ms = timeout_ms;
        start(&all->items[i]);
    }
    wr_buffer_put_text(out, "destinations\n");
    for (size_t i = 0; i < all->count; i++) {
        if (i == plan->count)
            wr_buffer_put_text(out, "sources\n");
        bool done = wait_for(&all->items[i], deadline_ns);
        result.stuck |= !done;
        result.reachable &= put_line(out, &all->items[i], done);
    }
    if (!result.stuck) {
        free(all->items);
        free(all);
    }
    return result;
}
