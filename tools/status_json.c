#include "status_json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "text/buffer.h"
#include "text/escape.h"
#include "status/report.h"
#include "dispatch/selfmetrics.h"
#include "text/utf8.h"

/* An object or array that is being written: what goes in front of its next member. */
struct writer {
    struct wr_buffer *out;
    bool started;
};

static void put_key(struct writer *writer, const char *key)
{
    if (writer->started)
        wr_buffer_put_char(writer->out, ',');
    writer->started = true;
    wr_buffer_put_format(writer->out, "\"%s\":", key);
}

static void put_text(struct writer *writer, const char *key, const char *text)
{
    struct wr_buffer shown = {0};
    put_key(writer, key);
    if (!wr_utf8_is_valid(text, strlen(text), NULL))
        wr_utf8_show(&shown, text, strlen(text), 0);
    const char *words = shown.length ? wr_buffer_text(&shown) : text;
    wr_escape_json(writer->out, words ? words : "");
    wr_buffer_fini(&shown);
}

static void put_count(struct writer *writer, const char *key, uint64_t count)
{
    put_key(writer, key);
    wr_buffer_put_format(writer->out, "%" PRIu64, count);
}

static void put_number(struct writer *writer, const char *key, double number)
{
    put_key(writer, key);
    if (isfinite(number) && number >= 0)
        wr_buffer_put_format(writer->out, "%.3f", number);
    else
        wr_buffer_put_text(writer->out, "null");
}

static void put_seconds(struct writer *writer, const char *key, int64_t ns)
{
    put_number(writer, key, ns < 0 ? -1 : (double)ns / 1e9);
}

static void put_truth(struct writer *writer, const char *key, bool truth)
{
    put_key(writer, key);
    wr_buffer_put_text(writer->out, truth ? "true" : "false");
}

/* {"full":3}: only what there is any of */
static void put_reasons(struct writer *writer, const char *key, const uint64_t *counts, int kinds,
                        const char *(*name_of)(int why))
{
    struct writer object = {writer->out, false};
    put_key(writer, key);
    wr_buffer_put_char(writer->out, '{');
    for (int i = 0; i < kinds; i++)
        if (counts[i] && name_of(i))
            put_count(&object, name_of(i), counts[i]);
    wr_buffer_put_char(writer->out, '}');
}

static void put_handler(struct wr_buffer *out, const struct wr_status_handler *handler)
{
    struct writer object = {out, false};
    const char *ending = handler->flags & WR_STATUS_ENDED ? wr_selfmetrics_drop_name(handler->ending) : NULL;
    wr_buffer_put_char(out, '{');
    put_text(&object, "name", handler->name);
    put_text(&object, "type", handler->type);
    put_truth(&object, "open", handler->flags & WR_STATUS_OPEN);
    put_truth(&object, "failing", handler->flags & WR_STATUS_FAILING);
    put_truth(&object, "full", handler->flags & WR_STATUS_FULL);
    put_truth(&object, "stalled", handler->flags & WR_STATUS_STALLED);
    put_truth(&object, "ended", handler->flags & WR_STATUS_ENDED);
    put_text(&object, "ended_why", ending ? ending : "");
    put_seconds(&object, "failing_s", handler->failing_ns);
    put_seconds(&object, "busy_s", handler->busy_ns);
    put_count(&object, "offered", handler->offered);
    put_count(&object, "recovered", handler->recovered);
    put_count(&object, "delivered", handler->delivered);
    put_reasons(&object, "dropped", handler->dropped, WEIR_DROPPED_MAX, wr_selfmetrics_drop_name);
    put_count(&object, "queued", handler->queued);
    put_count(&object, "queue_bytes", handler->queue_bytes);
    put_count(&object, "queue_bound", handler->queue_bound);
    put_seconds(&object, "queue_age_s", handler->queue_age_ns);
    put_count(&object, "spooled", handler->spooled);
    put_count(&object, "spool_bytes", handler->spool_bytes);
    put_count(&object, "spool_limit", handler->spool_limit);
    put_count(&object, "retries", handler->retries);
    put_count(&object, "faults", handler->faults);
    put_number(&object, "offered_per_s", handler->offered_rate);
    put_number(&object, "delivered_per_s", handler->delivered_rate);
    put_number(&object, "dropped_per_s", handler->dropped_rate);
    put_text(&object, "last_error", handler->reason);
    put_seconds(&object, "last_error_s", handler->reason_ns);
    wr_buffer_put_char(out, '}');
}

static void put_group(struct wr_buffer *out, const struct wr_status_group *group)
{
    struct writer object = {out, false};
    wr_buffer_put_char(out, '{');
    put_text(&object, "name", group->name);
    put_count(&object, "values", group->values);
    wr_buffer_put_char(out, '}');
}

static void put_lists(struct writer *object, const struct wr_status_view *view)
{
    struct wr_buffer *out = object->out;
    put_key(object, "handlers");
    for (size_t i = 0; i < view->handler_count; i++) {
        wr_buffer_put_char(out, i ? ',' : '[');
        put_handler(out, &view->handlers[i]);
    }
    wr_buffer_put_text(out, view->handler_count ? "]" : "[]");
    put_count(object, "handlers_more", view->process.handlers_more);
    put_key(object, "groups_to_nobody");
    for (size_t i = 0; i < view->group_count; i++) {
        wr_buffer_put_char(out, i ? ',' : '[');
        put_group(out, &view->groups[i]);
    }
    wr_buffer_put_text(out, view->group_count ? "]" : "[]");
}

void status_json_put(struct wr_buffer *out, const struct status_process *shown)
{
    struct writer object = {out, false};
    const struct wr_status_process *process = &shown->view->process;
    wr_buffer_put_char(out, '{');
    put_count(&object, "pid", (uint64_t)process->pid);
    put_truth(&object, "foreign_pid", shown->foreign);
    put_count(&object, "user", shown->user);
    put_text(&object, "program", process->program);
    put_text(&object, "weir", process->weir);
    put_seconds(&object, "up_s", process->up_ns);
    put_seconds(&object, "age_s", shown->age_ns);
    put_count(&object, "snapshots", process->snapshots);
    put_text(&object, "config", process->config);
    put_seconds(&object, "configured", process->configured_wall_ns ? process->configured_wall_ns : -1);
    put_count(&object, "configurations", process->configurations);
    put_count(&object, "added", process->added);
    put_count(&object, "taken", process->taken);
    put_count(&object, "in_rings", process->in_rings);
    put_count(&object, "to_nobody", process->unrouted);
    put_reasons(&object, "refused", process->refused, WEIR_REFUSED_MAX, wr_report_refusal_name);
    put_number(&object, "added_per_s", process->added_rate);
    put_count(&object, "rings", process->threads);
    put_count(&object, "series", process->series);
    put_count(&object, "groups_to_nobody_count", process->groups_unheard);
    put_lists(&object, shown->view);
    wr_buffer_put_char(out, '}');
}
