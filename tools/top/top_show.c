#include "top_show.h"

#include <math.h>

#include "common/command.h"
#include "common/figures.h"
#include "common/live_table.h"
#include "text/buffer.h"
#include "top_page.h"
#include "top_rows.h"
#include "top_series.h"

enum {
    FIGURE_COLUMNS = 9,
    FIGURES = 4,
    GAUGES_SHARE = 4, /* one line of so many is for gauges, if there are too many rows */
    HEAD_LINES = 2,
    TAIL_LINES = 2 /* "and 3 more", and the line that the cursor is in */
};

/* How many rows the screen has room for. */
struct fit {
    size_t rates, gauges;
};

/* ---- Lines on top ---------------------------------------------------------------------------- */

/* The URL is the last, since the others are worth more where the line is cut. */
static void put_head(struct wr_buffer *out, struct wr_buffer *line, const char *url,
                     const struct figures_screen *screen)
{
    wr_buffer_put_text(line, "  ");
    command_put_text(line, url);
    figures_put_cut(out, line->data ? line->data : "", line->length, (size_t)screen->columns - 1);
    wr_buffer_fini(line);
    live_table_end_line(out, screen);
}

static void put_summary(struct wr_buffer *out, const struct top_page *page, const struct top_rows *rows,
                        const struct figures_screen *screen)
{
    struct wr_buffer line = {0};
    live_table_put_clock(&line);
    wr_buffer_put_text(&line, "  ");
    figures_put_count(&line, (double)rows->series);
    wr_buffer_put_text(&line, " series, ");
    figures_put_count(&line, (double)rows->count);
    wr_buffer_put_text(&line, rows->count == 1 ? " moves, " : " move, ");
    figures_put_scaled(&line, rows->per_s);
    wr_buffer_put_text(&line, " per s");
    if (page->bad_lines) {
        wr_buffer_put_text(&line, ", ");
        figures_put_count(&line, (double)page->bad_lines);
        wr_buffer_put_text(&line, page->bad_lines == 1 ? " line not understood" : " lines not understood");
    }
    put_head(out, &line, page->url, screen);
}

void top_show_lost(struct wr_buffer *out, const struct top_page *page, int64_t lost_ns,
                   const struct figures_screen *screen)
{
    struct wr_buffer line = {0};
    live_table_put_clock(&line);
    wr_buffer_put_text(&line, "  no page for ");
    figures_put_duration(&line, lost_ns);
    wr_buffer_put_text(&line, ": ");
    command_put_text(&line, page->problem);
    put_head(out, &line, page->url, screen);
}

static void put_columns(struct wr_buffer *out, const char *const titles[FIGURES], const char *subject,
                        const struct figures_screen *screen)
{
    wr_buffer_put_text(out, screen->has_colours ? "\033[1m" : "");
    for (size_t i = 0; i < FIGURES; i++)
        figures_put_cell(out, titles[i], -FIGURE_COLUMNS);
    wr_buffer_put_format(out, "  %s", subject);
    wr_buffer_put_text(out, screen->has_colours ? "\033[0m" : "");
    live_table_end_line(out, screen);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* sign: of a figure that is not negative. Below 100 more digits are shown than figures_put_scaled has. */
static void put_figure(struct wr_buffer *out, double figure, const char *sign)
{
    struct wr_buffer cell = {0};
    double size = fabs(figure);
    if (!isnan(figure)) {
        wr_buffer_put_text(&cell, figure < 0 ? "-" : sign);
        if (isfinite(size) && size >= 100)
            figures_put_scaled(&cell, size);
        else
            figures_put_value(&cell, size);
    }
    live_table_put_right(out, &cell, FIGURE_COLUMNS);
}

/* NAME{KEY="VALUE",...} */
static void put_name(struct wr_buffer *out, const struct top_series *series, size_t columns)
{
    struct wr_buffer name = {0};
    const char *label = top_series_first_label(series);
    wr_buffer_put_text(&name, series->key);
    wr_buffer_put_text(&name, label ? "{" : "");
    for (const char *next; label; label = next) {
        next = top_series_next_label(series, label);
        wr_buffer_put_format(&name, "%s=\"%s\"%s", label, top_series_label_value(label), next ? "," : "}");
    }
    live_table_put_cut(out, command_text(&name), columns);
    wr_buffer_fini(&name);
}

static void put_row(struct wr_buffer *out, const struct top_row *row, const struct figures_screen *screen)
{
    bool is_gauge = row->series->kind == TOP_GAUGE;
    put_figure(out, is_gauge ? row->increase : row->per_s, is_gauge ? "+" : "");
    put_figure(out, row->mean, "");
    put_figure(out, row->p99, "");
    put_figure(out, row->series->value, "");
    wr_buffer_put_text(out, "  ");
    put_name(out, row->series, (size_t)(screen->columns - FIGURES * FIGURE_COLUMNS - 3));
    live_table_end_line(out, screen);
}

/* ---- The table ------------------------------------------------------------------------------- */

static struct fit find_fit(const struct top_rows *rows, const struct figures_screen *screen)
{
    struct fit fit = {rows->count - rows->gauges, rows->gauges};
    size_t lines = (size_t)screen->rows, headings = HEAD_LINES + (fit.gauges > 0);
    if (!screen->is_terminal || !lines || headings + rows->count + 1 <= lines)
        return fit;
    size_t room = lines > headings + TAIL_LINES ? lines - headings - TAIL_LINES : 1;
    size_t least = room / GAUGES_SHARE, left = room > fit.rates ? room - fit.rates : 0;
    size_t most = left > least ? left : least;
    fit.gauges = fit.gauges < most ? fit.gauges : most;
    fit.rates = fit.rates < room - fit.gauges ? fit.rates : room - fit.gauges;
    return fit;
}

void top_show(struct wr_buffer *out, const struct top_page *page, const struct top_rows *rows,
              const struct figures_screen *screen)
{
    static const char *const of_rates[FIGURES] = {"per s", "mean", "p99", "total"};
    static const char *const of_gauges[FIGURES] = {"change", "", "", "level"};
    const struct fit fit = find_fit(rows, screen);
    const struct top_row *gauges = rows->rows + (rows->count - rows->gauges);
    put_summary(out, page, rows, screen);
    put_columns(out, of_rates, "counter or histogram", screen);
    for (size_t i = 0; i < fit.rates; i++)
        put_row(out, &rows->rows[i], screen);
    if (fit.gauges)
        put_columns(out, of_gauges, "gauge", screen);
    for (size_t i = 0; i < fit.gauges; i++)
        put_row(out, &gauges[i], screen);
    if (fit.rates + fit.gauges < rows->count) {
        wr_buffer_put_format(out, "and %zu more", rows->count - fit.rates - fit.gauges);
        live_table_end_line(out, screen);
    }
}
