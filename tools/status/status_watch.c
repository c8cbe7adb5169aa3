#include "status_watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/command.h"
#include "common/figures.h"
#include "common/live_table.h"
#include "lane/losses.h"
#include "text/array.h"
#include "text/buffer.h"

enum {
    SLOW_S = 1,
    STATE_COLUMNS = 9,
    RATE_COLUMNS = 8,
    QUEUE_COLUMNS = 14,
    DROPPED_COLUMNS = 9,
    NAME_COLUMNS = 14,
    PROGRAM_COLUMNS = 24,
    NARROW_COLUMNS = 90,
    REASON_LEAST = 12,
    HEAD_LINES = 2,
    TAIL_LINES = 2 /* "and 3 more", and the line that the cursor is in */
};

/* The worse, the higher. */
enum severity { FINE, BUSY, FULL, DROPPING, FAILING, ENDED };

struct status_row {
    enum severity severity;
    int64_t pid;
    uint64_t dropped;
    char program[WR_STATUS_NAME_ROOM];
    struct wr_status_handler handler;
};

/* ---- Rows ------------------------------------------------------------------------------------ */

static enum severity find_severity(const struct wr_status_handler *handler)
{
    if (handler->flags & WR_STATUS_ENDED)
        return ENDED;
    if (handler->flags & WR_STATUS_FAILING)
        return FAILING;
    if (handler->flags & WR_STATUS_STALLED || handler->dropped_rate > 0)
        return DROPPING;
    if (handler->flags & WR_STATUS_FULL)
        return FULL;
    return handler->busy_ns > SLOW_S * INT64_C(1000000000) ? BUSY : FINE;
}

void status_watch_add(struct status_watch *watch, const struct status_process *process)
{
    const struct wr_status_view *view = process->view;
    watch->processes++;
    for (size_t i = 0; i < view->handler_count; i++) {
        if (!WR_ARRAY_HAS_ROOM(&watch->rows, &watch->room, (uint32_t)watch->count + 1))
            command_out_of_memory();
        struct status_row *row = &watch->rows[watch->count++];
        row->handler = view->handlers[i];
        row->severity = find_severity(&row->handler);
        row->dropped = wr_losses_sum(row->handler.dropped);
        row->pid = view->process.pid;
        snprintf(row->program, sizeof row->program, "%s", view->process.program);
    }
}

/* Those that fail first; then those that have dropped values; then by program. */
static int compare(const void *a, const void *b)
{
    const struct status_row *one = a, *other = b;
    if (one->severity != other->severity)
        return one->severity < other->severity ? 1 : -1;
    if (!one->dropped != !other->dropped)
        return one->dropped ? -1 : 1;
    int by_program = strcmp(one->program, other->program);
    if (by_program)
        return by_program;
    if (one->pid != other->pid)
        return one->pid < other->pid ? -1 : 1;
    return strcmp(one->handler.name, other->handler.name);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static void put_state(struct wr_buffer *out, const struct status_row *row, const struct figures_screen *screen)
{
    static const char *const names[] = {"open", "busy", "full", "dropping", "failing", "ended"};
    bool is_closed = row->severity == FINE && !(row->handler.flags & WR_STATUS_OPEN);
    const char *colour = row->severity >= DROPPING ? "\033[31m" : row->severity > FINE ? "\033[33m" : "";
    bool is_coloured = screen->has_colours && *colour;
    wr_buffer_put_text(out, is_coloured ? colour : "");
    figures_put_cell(out, is_closed ? "not open" : names[row->severity], STATE_COLUMNS);
    wr_buffer_put_text(out, is_coloured ? "\033[0m" : "");
}

static void put_rate(struct wr_buffer *out, double rate)
{
    struct wr_buffer cell = {0};
    if (rate >= 0)
        figures_put_scaled(&cell, rate);
    live_table_put_right(out, &cell, RATE_COLUMNS);
}

/* "12k, 34 %" */
static void put_queue(struct wr_buffer *out, const struct wr_status_handler *handler)
{
    struct wr_buffer cell = {0};
    figures_put_scaled(&cell, (double)(handler->queued + handler->spooled));
    if (handler->queue_bound)
        wr_buffer_put_format(&cell, ", %.0f %%",
                             100 * (double)handler->queue_bytes / (double)handler->queue_bound);
    live_table_put_right(out, &cell, QUEUE_COLUMNS);
}

static void put_dropped(struct wr_buffer *out, uint64_t dropped)
{
    struct wr_buffer cell = {0};
    figures_put_scaled(&cell, (double)dropped);
    live_table_put_right(out, &cell, DROPPED_COLUMNS);
}

static void put_reason(struct wr_buffer *out, const struct status_row *row, size_t columns)
{
    const struct wr_status_handler *handler = &row->handler;
    struct wr_buffer reason = {0};
    if (row->severity == ENDED)
        wr_buffer_put_format(&reason, "%s; ",
                             wr_losses_name(handler->ending) ? wr_losses_name(handler->ending) : "other");
    if (row->severity == FAILING) {
        figures_put_duration(&reason, handler->failing_ns);
        wr_buffer_put_text(&reason, ": ");
    }
    wr_buffer_put_text(&reason, row->severity >= FAILING || row->dropped ? handler->reason : "");
    const char *text = wr_buffer_text(&reason);
    live_table_put_cut(out, text ? text : "", columns);
    wr_buffer_fini(&reason);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* Returns how many columns are left for the reason; 0: none. */
static size_t find_reason_columns(const struct figures_screen *screen)
{
    size_t used = STATE_COLUMNS + 1 + NAME_COLUMNS + RATE_COLUMNS + QUEUE_COLUMNS + DROPPED_COLUMNS + 2;
    if (screen->columns >= NARROW_COLUMNS)
        used += PROGRAM_COLUMNS + 1;
    size_t columns = (size_t)screen->columns;
    return columns >= used + REASON_LEAST ? columns - used : 0;
}

static void put_row(struct wr_buffer *out, const struct status_row *row, const struct figures_screen *screen)
{
    struct wr_buffer program = {0};
    put_state(out, row, screen);
    wr_buffer_put_char(out, ' ');
    live_table_put_cut(out, row->handler.name, NAME_COLUMNS);
    if (screen->columns >= NARROW_COLUMNS) {
        wr_buffer_put_format(&program, "%s %" PRId64, row->program, row->pid);
        const char *text = wr_buffer_text(&program);
        wr_buffer_put_char(out, ' ');
        live_table_put_cut(out, text ? text : "", PROGRAM_COLUMNS);
        wr_buffer_fini(&program);
    }
    put_rate(out, row->handler.delivered_rate);
    put_queue(out, &row->handler);
    put_dropped(out, row->dropped);
    size_t columns = find_reason_columns(screen);
    if (columns) {
        wr_buffer_put_text(out, "  ");
        put_reason(out, row, columns);
    }
    live_table_end_line(out, screen);
}

static void put_summary(struct wr_buffer *out, const struct status_watch *watch,
                        const struct figures_screen *screen)
{
    struct wr_buffer line = {0};
    size_t failing = 0;
    for (size_t i = 0; i < watch->count; i++)
        failing += watch->rows[i].severity >= DROPPING;
    live_table_put_clock(&line);
    wr_buffer_put_format(&line, "  %zu program%s, %zu handler%s, %zu failing or dropping", watch->processes,
                         watch->processes == 1 ? "" : "s", watch->count, watch->count == 1 ? "" : "s", failing);
    figures_put_cut(out, line.data ? line.data : "", line.length, (size_t)screen->columns - 1);
    wr_buffer_fini(&line);
    live_table_end_line(out, screen);
}

static void put_columns(struct wr_buffer *out, const struct figures_screen *screen)
{
    wr_buffer_put_text(out, screen->has_colours ? "\033[1m" : "");
    figures_put_cell(out, "state", STATE_COLUMNS + 1);
    figures_put_cell(out, "handler", NAME_COLUMNS);
    if (screen->columns >= NARROW_COLUMNS)
        figures_put_cell(out, " program", PROGRAM_COLUMNS + 1);
    figures_put_cell(out, "per s", -RATE_COLUMNS);
    figures_put_cell(out, "queued", -QUEUE_COLUMNS);
    figures_put_cell(out, "dropped", -DROPPED_COLUMNS);
    wr_buffer_put_text(out, find_reason_columns(screen) ? "  last error" : "");
    wr_buffer_put_text(out, screen->has_colours ? "\033[0m" : "");
    live_table_end_line(out, screen);
}

void status_watch_put(struct wr_buffer *out, struct status_watch *watch, const struct figures_screen *screen)
{
    size_t most = watch->count, lines = (size_t)screen->rows;
    if (watch->count)
        qsort(watch->rows, watch->count, sizeof *watch->rows, compare);
    if (screen->is_terminal && lines && watch->count + HEAD_LINES + 1 > lines)
        most = lines > HEAD_LINES + TAIL_LINES ? lines - HEAD_LINES - TAIL_LINES : 1;
    put_summary(out, watch, screen);
    put_columns(out, screen);
    for (size_t i = 0; i < most; i++)
        put_row(out, &watch->rows[i], screen);
    if (most < watch->count) {
        wr_buffer_put_format(out, "and %zu more", watch->count - most);
        live_table_end_line(out, screen);
    }
    free(watch->rows);
    *watch = (struct status_watch){0};
}
