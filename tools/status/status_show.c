#include "status_show.h"

#include <inttypes.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/command.h"
#include "common/figures.h"
#include "lane/losses.h"
#include "status/report.h"
#include "status/status_json.h"
#include "status_senders.h"
#include "text/buffer.h"
#include "text/units.h"

/* A callback that takes longer is shown as busy. */
enum { SLOW_S = 1 };

static const int64_t second_ns = 1000000000;

/* ---- Parts of lines -------------------------------------------------------------------------- */

static void put_size(struct wr_buffer *out, uint64_t bytes)
{
    char text[WR_UNITS_ROOM];
    wr_buffer_put_text(out, wr_units_put_size(text, bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes));
}

/* Negative: not known yet. */
static void put_rate(struct wr_buffer *out, double rate)
{
    if (isfinite(rate) && rate >= 0)
        wr_buffer_put_format(out, " (%.1f/s)", rate);
}

static void put_counts(struct wr_buffer *out, const uint64_t *counts, int kinds,
                       const char *(*name_of)(int kind))
{
    uint64_t sum = 0;
    const char *separator = ": ";
    for (int i = 0; i < kinds; i++)
        sum += counts[i];
    wr_buffer_put_format(out, "%" PRIu64, sum);
    for (int i = 0; i < kinds; i++) {
        if (!counts[i])
            continue;
        wr_buffer_put_format(out, "%s%" PRIu64 " %s", separator, counts[i], name_of(i) ? name_of(i) : "other");
        separator = ", ";
    }
}

/* ---- A handler ------------------------------------------------------------------------------- */

static void put_state(struct wr_buffer *out, const struct wr_status_handler *handler)
{
    uint32_t flags = handler->flags;
    if (flags & WR_STATUS_ENDED) {
        const char *why = wr_losses_name(handler->ending);
        wr_buffer_put_format(out, "ended (%s): new values are dropped", why ? why : "other");
        return;
    }
    if (flags & WR_STATUS_FAILING) {
        wr_buffer_put_text(out, "retrying for ");
        figures_put_duration(out, handler->failing_ns);
    } else {
        wr_buffer_put_text(out, flags & WR_STATUS_OPEN ? "open" : "not open yet");
    }
    if (handler->busy_ns > SLOW_S * second_ns) {
        wr_buffer_put_text(out, ", busy for ");
        figures_put_duration(out, handler->busy_ns);
    }
    if (flags & WR_STATUS_STALLED)
        wr_buffer_put_text(out, ", stalled: values that do not fit are dropped");
    else if (flags & WR_STATUS_FULL)
        wr_buffer_put_text(out, ", full: calls wait");
}

static void put_queue(struct wr_buffer *out, const struct wr_status_handler *handler)
{
    wr_buffer_put_format(out, "    queue       %" PRIu64 " values, ", handler->queued);
    put_size(out, handler->queue_bytes);
    wr_buffer_put_text(out, " of ");
    put_size(out, handler->queue_bound);
    if (handler->queued) {
        wr_buffer_put_text(out, ", oldest queued for ");
        figures_put_duration(out, handler->queue_age_ns);
    }
    wr_buffer_put_char(out, '\n');
}

static void put_summing(struct wr_buffer *out, const struct wr_status_handler *handler)
{
    if (handler->summing)
        wr_buffer_put_format(out, "    summing     %" PRIu64 " values, of the interval that is open\n",
                             handler->summing);
}

static void put_spool(struct wr_buffer *out, const struct wr_status_handler *handler)
{
    if (!handler->spool_limit && !handler->spooled && !handler->recovered)
        return;
    wr_buffer_put_format(out, "    spooled     %" PRIu64 ", ", handler->spooled);
    put_size(out, handler->spool_bytes);
    wr_buffer_put_text(out, " of ");
    put_size(out, handler->spool_limit);
    wr_buffer_put_format(out, "; recovered %" PRIu64 "\n", handler->recovered);
}

static void put_last_error(struct wr_buffer *out, const char *reason, int64_t age_ns)
{
    if (age_ns < 0 || !*reason)
        return;
    wr_buffer_put_text(out, "    last error  ");
    figures_put_duration(out, age_ns);
    wr_buffer_put_text(out, " ago: ");
    command_put_text(out, reason);
    wr_buffer_put_char(out, '\n');
}

static void put_errors(struct wr_buffer *out, const struct wr_status_handler *handler)
{
    wr_buffer_put_format(out, "    retries     %" PRIu64 "\n", handler->retries);
    if (handler->faults)
        wr_buffer_put_format(out, "    faults      %" PRIu64 " violations of the handler contract\n",
                             handler->faults);
    put_last_error(out, handler->reason, handler->reason_ns);
}

static void put_handler(struct wr_buffer *out, const struct wr_status_handler *handler)
{
    wr_buffer_put_text(out, "  ");
    command_put_text(out, handler->name);
    if (handler->type[0]) {
        wr_buffer_put_text(out, " (");
        command_put_text(out, handler->type);
        wr_buffer_put_char(out, ')');
    }
    wr_buffer_put_text(out, ": ");
    put_state(out, handler);
    wr_buffer_put_format(out, "\n    offered     %" PRIu64, handler->offered);
    put_rate(out, handler->offered_rate);
    wr_buffer_put_format(out, "\n    delivered   %" PRIu64, handler->delivered);
    put_rate(out, handler->delivered_rate);
    wr_buffer_put_text(out, "\n    dropped     ");
    put_counts(out, handler->dropped, WEIR_DROPPED_MAX, wr_losses_name);
    put_rate(out, handler->dropped_rate);
    wr_buffer_put_char(out, '\n');
    put_queue(out, handler);
    put_summing(out, handler);
    put_spool(out, handler);
    put_errors(out, handler);
}

/* ---- The process ----------------------------------------------------------------------------- */

static void put_title(struct wr_buffer *out, const struct status_process *shown)
{
    const struct wr_status_process *process = &shown->view->process;
    wr_buffer_put_format(out, "process %" PRId64, process->pid);
    if (shown->foreign)
        wr_buffer_put_text(out, " (in another pid namespace)");
    wr_buffer_put_text(out, ", ");
    command_put_text(out, process->program);
    if (process->up_ns >= 0) {
        wr_buffer_put_text(out, ", up ");
        figures_put_duration(out, process->up_ns);
    }
    wr_buffer_put_text(out, "; as of ");
    figures_put_duration(out, shown->age_ns);
    wr_buffer_put_text(out, " ago; weir ");
    command_put_text(out, process->weir);
    wr_buffer_put_char(out, '\n');
}

static void put_config(struct wr_buffer *out, const struct wr_status_process *process)
{
    struct tm parts;
    char text[40] = "";
    time_t seconds = (time_t)(process->configured_wall_ns / second_ns);
    if (process->configured_wall_ns > 0 && gmtime_r(&seconds, &parts))
        strftime(text, sizeof text, ", since %Y-%m-%dT%H:%M:%SZ", &parts);
    wr_buffer_put_text(out, "  config        ");
    command_put_text(out, process->config);
    wr_buffer_put_format(out, "%s\n", text);
}

static void put_unrouted(struct wr_buffer *out, const struct wr_status_view *view)
{
    wr_buffer_put_format(out, "  unrouted      %" PRIu64, view->process.unrouted);
    for (size_t i = 0; i < view->group_count; i++) {
        wr_buffer_put_format(out, "%s%" PRIu64 " of ", i ? ", " : ": ", view->groups[i].values);
        command_put_text(out, view->groups[i].name);
    }
    if (view->process.groups_unrouted > view->group_count)
        wr_buffer_put_format(out, ", and %" PRIu64 " more groups",
                             view->process.groups_unrouted - view->group_count);
    wr_buffer_put_char(out, '\n');
}

static void put_unmatched(struct wr_buffer *out, const struct wr_status_process *process)
{
    uint64_t count = process->entries_unmatched;
    if (!count)
        return;
    wr_buffer_put_format(out, "  metrics       %" PRIu64 " of %" PRIu64 " entries matched no name", count,
                         process->entries);
    for (uint64_t i = 0; i < count && i < WR_STATUS_ENTRIES_MOST; i++) {
        wr_buffer_put_text(out, i ? ", " : ": ");
        command_put_text(out, process->unmatched[i].name);
        wr_buffer_put_text(out, " of ");
        command_put_text(out, process->unmatched[i].group);
    }
    if (count > WR_STATUS_ENTRIES_MOST)
        wr_buffer_put_format(out, ", and %" PRIu64 " more", count - WR_STATUS_ENTRIES_MOST);
    wr_buffer_put_char(out, '\n');
}

static void put_source(struct wr_buffer *out, const struct wr_status_source *source)
{
    wr_buffer_put_text(out, "  source ");
    command_put_text(out, source->name);
    wr_buffer_put_text(out, " (");
    command_put_text(out, source->type);
    wr_buffer_put_format(out, "): %s\n", wr_status_json_source_state((int)source->state));
    if (source->lines || source->bad_lines)
        wr_buffer_put_format(out, "    lines       %" PRIu64 ", %" PRIu64 " invalid\n", source->lines,
                             source->bad_lines);
    wr_buffer_put_format(
        out, "    records     %" PRIu64 "\n    added       %" PRIu64 "\n    refused     %" PRIu64 "\n",
        source->records, source->added, source->refused);
    put_last_error(out, source->reason, source->reason_ns);
}

static void put_sources(struct wr_buffer *out, const struct wr_status_view *view)
{
    for (size_t i = 0; i < view->source_count; i++) {
        put_source(out, &view->sources[i]);
        status_put_senders(out, view, i);
    }
    if (view->process.sources_more)
        wr_buffer_put_format(out, "  and %" PRIu64 " more sources\n", view->process.sources_more);
}

void status_show(struct wr_buffer *out, const struct status_process *shown)
{
    const struct wr_status_process *process = &shown->view->process;
    put_title(out, shown);
    put_config(out, process);
    wr_buffer_put_format(out, "  added         %" PRIu64, process->added);
    put_rate(out, process->added_rate);
    wr_buffer_put_format(out, ", %" PRIu64 " in rings\n  refused       ", process->in_rings);
    put_counts(out, process->refused, WEIR_REFUSED_MAX, wr_report_refusal_name);
    wr_buffer_put_char(out, '\n');
    put_unrouted(out, shown->view);
    put_unmatched(out, process);
    wr_buffer_put_format(out, "  series        %" PRIu64 "; thread rings %" PRIu64 "\n", process->series,
                         process->threads);
    put_sources(out, shown->view);
    for (size_t i = 0; i < shown->view->handler_count; i++)
        put_handler(out, &shown->view->handlers[i]);
    if (process->handlers_more)
        wr_buffer_put_format(out, "  and %" PRIu64 " more handlers\n", process->handlers_more);
}

/* ---- The table ------------------------------------------------------------------------------- */

static const char *find_user(char *out, size_t room, uid_t user)
{
    const struct passwd *entry = getpwuid(user);
    if (entry)
        snprintf(out, room, "%s", entry->pw_name);
    else
        snprintf(out, room, "%u", (unsigned)user);
    return out;
}

static size_t count_failing(const struct wr_status_view *view)
{
    size_t failing = 0;
    for (size_t i = 0; i < view->handler_count; i++)
        failing += (view->handlers[i].flags & (WR_STATUS_FAILING | WR_STATUS_STALLED | WR_STATUS_ENDED)) != 0;
    return failing;
}

void status_show_head(struct wr_buffer *out)
{
    wr_buffer_put_format(out, "%8s  %-10s  %14s  %12s  %-16s  %s\n", "pid", "user", "up", "added",
                         "failing handlers", "program");
}

void status_show_line(struct wr_buffer *out, const struct status_process *shown)
{
    const struct wr_status_process *process = &shown->view->process;
    char user[64], failing[48];
    struct wr_buffer up = {0};
    figures_put_duration(&up, process->up_ns);
    const char *text = wr_buffer_text(&up);
    snprintf(failing, sizeof failing, "%zu of %zu", count_failing(shown->view), shown->view->handler_count);
    wr_buffer_put_format(out, "%8" PRId64 "  %-10s  %14s  %12" PRIu64 "  %-16s  ", process->pid,
                         find_user(user, sizeof user, shown->user), text ? text : "", process->added, failing);
    command_put_text(out, process->program);
    wr_buffer_put_char(out, '\n');
    wr_buffer_fini(&up);
}
