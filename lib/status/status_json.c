#include "status/status_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/source.h>

#include "lane/losses.h"
#include "status/report.h"
#include "text/buffer.h"
#include "text/escape.h"
#include "text/utf8.h"

/* ---- JSON ------------------------------------------------------------------------------------ */

/* key NULL: an element of an array. */
static void put_key(struct wr_buffer *out, const char *key)
{
    if (out->length && !strchr("{[", out->data[out->length - 1]))
        wr_buffer_put_char(out, ',');
    if (key)
        wr_buffer_put_format(out, "\"%s\":", key);
}

static void put_text(struct wr_buffer *out, const char *key, const char *text)
{
    struct wr_buffer shown = {0};
    bool is_valid = !*text || wr_utf8_is_valid(text, strlen(text), NULL);
    if (!is_valid)
        wr_utf8_show(&shown, text, strlen(text), 0);
    const char *valid = is_valid ? text : wr_buffer_text(&shown);
    put_key(out, key);
    wr_escape_json(out, valid ? valid : "");
    wr_buffer_fini(&shown);
}

static void put_bool(struct wr_buffer *out, const char *key, bool value)
{
    put_key(out, key);
    wr_buffer_put_text(out, value ? "true" : "false");
}

static void put_count(struct wr_buffer *out, const char *key, uint64_t count)
{
    put_key(out, key);
    wr_buffer_put_format(out, "%" PRIu64, count);
}

/* With three decimals. Written from integers: the decimal point of printf depends on the locale. Negative: does
 * not apply. */
static void put_rate(struct wr_buffer *out, const char *key, double rate)
{
    put_key(out, key);
    if (rate < 0 || !(rate < 1e15)) {
        wr_buffer_put_text(out, "null");
        return;
    }
    uint64_t thousandths = (uint64_t)(rate * 1000 + 0.5);
    wr_buffer_put_format(out, "%" PRIu64 ".%03" PRIu64, thousandths / 1000, thousandths % 1000);
}

static void put_seconds(struct wr_buffer *out, const char *key, int64_t ns)
{
    put_rate(out, key, ns < 0 ? -1 : (double)ns / 1e9);
}

static void open_part(struct wr_buffer *out, const char *key, char bracket)
{
    put_key(out, key);
    wr_buffer_put_char(out, bracket);
}

static void close_part(struct wr_buffer *out, char bracket)
{
    wr_buffer_put_char(out, bracket);
}

/* {"full": 3}: without those that are 0. */
static void put_reasons(struct wr_buffer *out, const char *key, const uint64_t *counts, int kinds,
                        const char *(*name_of)(int kind))
{
    open_part(out, key, '{');
    for (int i = 0; i < kinds; i++)
        if (counts[i] && name_of(i))
            put_count(out, name_of(i), counts[i]);
    close_part(out, '}');
}

/* ---- Handlers -------------------------------------------------------------------------------- */

static void put_state(struct wr_buffer *out, const struct wr_status_handler *handler)
{
    const char *ending = handler->flags & WR_STATUS_ENDED ? wr_losses_name(handler->ending) : NULL;
    put_bool(out, "open", handler->flags & WR_STATUS_OPEN);
    put_bool(out, "failing", handler->flags & WR_STATUS_FAILING);
    put_bool(out, "full", handler->flags & WR_STATUS_FULL);
    put_bool(out, "stalled", handler->flags & WR_STATUS_STALLED);
    put_bool(out, "ended", handler->flags & WR_STATUS_ENDED);
    put_text(out, "ended_why", ending ? ending : "");
    put_seconds(out, "failing_s", handler->failing_ns);
    put_seconds(out, "busy_s", handler->busy_ns);
}

static void put_counts(struct wr_buffer *out, const struct wr_status_handler *handler)
{
    put_count(out, "offered", handler->offered);
    put_count(out, "recovered", handler->recovered);
    put_count(out, "delivered", handler->delivered);
    put_reasons(out, "dropped", handler->dropped, WEIR_DROPPED_MAX, wr_losses_name);
    put_count(out, "queued", handler->queued);
    put_count(out, "queue_bytes", handler->queue_bytes);
    put_count(out, "queue_bound", handler->queue_bound);
    put_seconds(out, "queue_age_s", handler->queue_age_ns);
    put_count(out, "summing", handler->summing);
    put_count(out, "spooled", handler->spooled);
    put_count(out, "spool_bytes", handler->spool_bytes);
    put_count(out, "spool_limit", handler->spool_limit);
    put_count(out, "retries", handler->retries);
    put_count(out, "faults", handler->faults);
    put_rate(out, "offered_per_s", handler->offered_rate);
    put_rate(out, "delivered_per_s", handler->delivered_rate);
    put_rate(out, "dropped_per_s", handler->dropped_rate);
}

static void put_handlers(struct wr_buffer *out, const struct wr_status_view *view)
{
    open_part(out, "handlers", '[');
    for (size_t i = 0; i < view->handler_count; i++) {
        const struct wr_status_handler *handler = &view->handlers[i];
        open_part(out, NULL, '{');
        put_text(out, "name", handler->name);
        put_text(out, "type", handler->type);
        put_state(out, handler);
        put_counts(out, handler);
        put_text(out, "last_error", handler->reason);
        put_seconds(out, "last_error_s", handler->reason_ns);
        close_part(out, '}');
    }
    close_part(out, ']');
    put_count(out, "handlers_more", view->process.handlers_more);
}

/* ---- Sources --------------------------------------------------------------------------------- */

const char *wr_status_json_source_state(int state)
{
    switch (state) {
    case WEIR_SOURCE_STARTING: return "starting";
    case WEIR_SOURCE_RUNNING: return "running";
    case WEIR_SOURCE_WAITING: return "waiting";
    case WEIR_SOURCE_ENDED: return "ended";
    case WEIR_SOURCE_BROKEN: return "failed";
    case WEIR_SOURCE_STOPPED: return "stopped";
    default: return "unknown";
    }
}

const char *wr_status_json_sender_state(int64_t state)
{
    return state == WEIR_SENDER_CONNECTED ? "connected" : state == WEIR_SENDER_ENDED ? "ended" : "vanished";
}

uint64_t wr_status_json_waiting(const struct wr_status_sender *sender)
{
    uint64_t had = sender->added + sender->recovered, settled = sender->delivered + sender->lost;
    return had > settled ? had - settled : 0;
}

static void put_sender(struct wr_buffer *out, const struct wr_status_sender *sender)
{
    open_part(out, NULL, '{');
    put_text(out, "name", sender->name);
    put_text(out, "state", wr_status_json_sender_state(sender->state));
    put_count(out, "processes", sender->processes);
    put_count(out, "added", sender->added);
    put_count(out, "recovered", sender->recovered);
    put_count(out, "delivered", sender->delivered);
    put_count(out, "waiting", wr_status_json_waiting(sender));
    put_count(out, "lost", sender->lost);
    put_count(out, "received", sender->received);
    put_count(out, "repeats", sender->repeats);
    put_count(out, "missing", sender->missing);
    close_part(out, '}');
}

static void put_source(struct wr_buffer *out, const struct wr_status_view *view, size_t index)
{
    const struct wr_status_source *source = &view->sources[index];
    open_part(out, NULL, '{');
    put_text(out, "name", source->name);
    put_text(out, "type", source->type);
    put_text(out, "state", wr_status_json_source_state((int)source->state));
    put_count(out, "lines", source->lines);
    put_count(out, "bad_lines", source->bad_lines);
    put_count(out, "bytes", source->bytes);
    put_count(out, "records", source->records);
    put_count(out, "added", source->added);
    put_count(out, "refused", source->refused);
    put_count(out, "lost", source->lost);
    put_text(out, "last_error", source->reason);
    put_seconds(out, "last_error_s", source->reason_ns);
    open_part(out, "senders", '[');
    for (size_t i = 0; i < view->sender_count; i++)
        if (view->senders[i].source == (int64_t)index)
            put_sender(out, &view->senders[i]);
    close_part(out, ']');
    close_part(out, '}');
}

static void put_sources(struct wr_buffer *out, const struct wr_status_view *view)
{
    open_part(out, "sources", '[');
    for (size_t i = 0; i < view->source_count; i++)
        put_source(out, view, i);
    close_part(out, ']');
    put_count(out, "sources_more", view->process.sources_more);
    put_count(out, "senders_more", view->process.senders_more);
}

/* ---- The process ----------------------------------------------------------------------------- */

static void put_unmatched(struct wr_buffer *out, const struct wr_status_process *process)
{
    put_count(out, "metrics_count", process->entries);
    put_count(out, "metrics_unmatched_count", process->entries_unmatched);
    open_part(out, "metrics_unmatched", '[');
    for (uint64_t i = 0; i < process->entries_unmatched && i < WR_STATUS_ENTRIES_MOST; i++) {
        open_part(out, NULL, '{');
        put_text(out, "group", process->unmatched[i].group);
        put_text(out, "name", process->unmatched[i].name);
        close_part(out, '}');
    }
    close_part(out, ']');
}

static void put_groups(struct wr_buffer *out, const struct wr_status_view *view)
{
    put_count(out, "unrouted_group_count", view->process.groups_unrouted);
    open_part(out, "unrouted_groups", '[');
    for (size_t i = 0; i < view->group_count; i++) {
        open_part(out, NULL, '{');
        put_text(out, "name", view->groups[i].name);
        put_count(out, "values", view->groups[i].values);
        close_part(out, '}');
    }
    close_part(out, ']');
}

static void put_process(struct wr_buffer *out, const struct wr_status_process *process)
{
    put_count(out, "pid", (uint64_t)process->pid);
    put_text(out, "program", process->program);
    put_text(out, "weir", process->weir);
    put_seconds(out, "up_s", process->up_ns);
    put_seconds(out, "time", process->taken_wall_ns);
    put_count(out, "snapshots", process->snapshots);
    put_text(out, "config", process->config);
    put_seconds(out, "configured", process->configured_wall_ns ? process->configured_wall_ns : -1);
    put_count(out, "configurations", process->configurations);
    put_count(out, "added", process->added);
    put_count(out, "taken", process->taken);
    put_count(out, "in_rings", process->in_rings);
    put_count(out, "unrouted", process->unrouted);
    put_reasons(out, "refused", process->refused, WEIR_REFUSED_MAX, wr_report_refusal_name);
    put_rate(out, "added_per_s", process->added_rate);
    put_count(out, "rings", process->threads);
    put_count(out, "series", process->series);
}

void wr_status_json_put(struct wr_buffer *out, const struct wr_status_view *view)
{
    open_part(out, NULL, '{');
    put_process(out, &view->process);
    put_unmatched(out, &view->process);
    put_sources(out, view);
    put_handlers(out, view);
    put_groups(out, view);
    close_part(out, '}');
}
