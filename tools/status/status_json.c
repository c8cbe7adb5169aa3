#include "status_json.h"

#include "common/json.h"
#include "common/source_state.h"
#include "lane/losses.h"
#include "status/report.h"

/* Negative: does not apply. */
static void add_rate(struct json_object *object, const char *key, double rate)
{
    if (rate >= 0)
        json_add_decimals(object, key, rate, 3);
    else
        json_add_text(object, key, NULL);
}

static void add_seconds(struct json_object *object, const char *key, int64_t ns)
{
    add_rate(object, key, ns < 0 ? -1 : (double)ns / 1e9);
}

/* {"full": 3}: without those that are 0. */
static void add_reasons(struct json_object *object, const char *key, const uint64_t *counts, int kinds,
                        const char *(*name_of)(int kind))
{
    struct json_object *reasons = json_add_object(object, key);
    for (int i = 0; i < kinds; i++)
        if (counts[i] && name_of(i))
            json_add_count(reasons, name_of(i), counts[i]);
}

static void add_handler(struct json_object *array, const struct wr_status_handler *handler)
{
    struct json_object *object = json_add_object(array, NULL);
    const char *ending = handler->flags & WR_STATUS_ENDED ? wr_losses_name(handler->ending) : NULL;
    json_add_text(object, "name", handler->name);
    json_add_text(object, "type", handler->type);
    json_add_bool(object, "open", handler->flags & WR_STATUS_OPEN);
    json_add_bool(object, "failing", handler->flags & WR_STATUS_FAILING);
    json_add_bool(object, "full", handler->flags & WR_STATUS_FULL);
    json_add_bool(object, "stalled", handler->flags & WR_STATUS_STALLED);
    json_add_bool(object, "ended", handler->flags & WR_STATUS_ENDED);
    json_add_text(object, "ended_why", ending ? ending : "");
    add_seconds(object, "failing_s", handler->failing_ns);
    add_seconds(object, "busy_s", handler->busy_ns);
    json_add_count(object, "offered", handler->offered);
    json_add_count(object, "recovered", handler->recovered);
    json_add_count(object, "delivered", handler->delivered);
    add_reasons(object, "dropped", handler->dropped, WEIR_DROPPED_MAX, wr_losses_name);
    json_add_count(object, "queued", handler->queued);
    json_add_count(object, "queue_bytes", handler->queue_bytes);
    json_add_count(object, "queue_bound", handler->queue_bound);
    add_seconds(object, "queue_age_s", handler->queue_age_ns);
    json_add_count(object, "summing", handler->summing);
    json_add_count(object, "spooled", handler->spooled);
    json_add_count(object, "spool_bytes", handler->spool_bytes);
    json_add_count(object, "spool_limit", handler->spool_limit);
    json_add_count(object, "retries", handler->retries);
    json_add_count(object, "faults", handler->faults);
    add_rate(object, "offered_per_s", handler->offered_rate);
    add_rate(object, "delivered_per_s", handler->delivered_rate);
    add_rate(object, "dropped_per_s", handler->dropped_rate);
    json_add_text(object, "last_error", handler->reason);
    add_seconds(object, "last_error_s", handler->reason_ns);
}

static void add_sources(struct json_object *object, const struct wr_status_view *view)
{
    struct json_object *sources = json_add_array(object, "sources");
    for (size_t i = 0; i < view->source_count; i++) {
        const struct wr_status_source *source = &view->sources[i];
        struct json_object *one = json_add_object(sources, NULL);
        json_add_text(one, "name", source->name);
        json_add_text(one, "type", source->type);
        json_add_text(one, "state", source_state_name((int)source->state));
        json_add_count(one, "lines", source->lines);
        json_add_count(one, "bad_lines", source->bad_lines);
        json_add_count(one, "records", source->records);
        json_add_count(one, "added", source->added);
        json_add_count(one, "refused", source->refused);
    }
    json_add_count(object, "sources_more", view->process.sources_more);
}

static void add_group(struct json_object *array, const struct wr_status_group *group)
{
    struct json_object *object = json_add_object(array, NULL);
    json_add_text(object, "name", group->name);
    json_add_count(object, "values", group->values);
}

static void add_unmatched(struct json_object *object, const struct wr_status_process *process)
{
    json_add_count(object, "metrics_count", process->entries);
    json_add_count(object, "metrics_unmatched_count", process->entries_unmatched);
    struct json_object *entries = json_add_array(object, "metrics_unmatched");
    for (uint64_t i = 0; i < process->entries_unmatched && i < WR_STATUS_ENTRIES_MOST; i++) {
        struct json_object *entry = json_add_object(entries, NULL);
        json_add_text(entry, "group", process->unmatched[i].group);
        json_add_text(entry, "name", process->unmatched[i].name);
    }
}

void status_json_add(struct json_object *array, const struct status_process *shown)
{
    const struct wr_status_view *view = shown->view;
    const struct wr_status_process *process = &view->process;
    struct json_object *object = json_add_object(array, NULL);
    json_add_count(object, "pid", (uint64_t)process->pid);
    json_add_bool(object, "foreign_pid", shown->foreign);
    json_add_count(object, "user", shown->user);
    json_add_text(object, "program", process->program);
    json_add_text(object, "weir", process->weir);
    add_seconds(object, "up_s", process->up_ns);
    add_seconds(object, "age_s", shown->age_ns);
    json_add_count(object, "snapshots", process->snapshots);
    json_add_text(object, "config", process->config);
    add_seconds(object, "configured", process->configured_wall_ns ? process->configured_wall_ns : -1);
    json_add_count(object, "configurations", process->configurations);
    json_add_count(object, "added", process->added);
    json_add_count(object, "taken", process->taken);
    json_add_count(object, "in_rings", process->in_rings);
    json_add_count(object, "unrouted", process->unrouted);
    add_reasons(object, "refused", process->refused, WEIR_REFUSED_MAX, wr_report_refusal_name);
    add_rate(object, "added_per_s", process->added_rate);
    json_add_count(object, "rings", process->threads);
    json_add_count(object, "series", process->series);
    json_add_count(object, "unrouted_group_count", process->groups_unrouted);
    add_unmatched(object, process);
    add_sources(object, view);
    struct json_object *handlers = json_add_array(object, "handlers");
    for (size_t i = 0; i < view->handler_count; i++)
        add_handler(handlers, &view->handlers[i]);
    json_add_count(object, "handlers_more", process->handlers_more);
    struct json_object *groups = json_add_array(object, "unrouted_groups");
    for (size_t i = 0; i < view->group_count; i++)
        add_group(groups, &view->groups[i]);
}
