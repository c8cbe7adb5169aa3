#include "page_chart.h"

#include <math.h>
#include <stdbool.h>

#include "page_text.h"
#include "text/buffer.h"

/* A rectangle in units of the SVG, and what it shows. */
struct plot {
    const struct chart *chart;
    double left, top, width, height;
    double first_s, last_s; /* times */
    double least, most;     /* values */
    size_t step;            /* every so many rows are drawn */
};

static double time_of(const struct chart *chart, size_t row)
{
    return chart->rows[row * chart->width + chart->time];
}

static double value_of(const struct chart *chart, size_t row, size_t line)
{
    return chart->rows[row * chart->width + chart->columns[line]] * (chart->scale > 0 ? chart->scale : 1);
}

static double x_of(const struct plot *plot, double time_s)
{
    double share =
        plot->last_s > plot->first_s ? (time_s - plot->first_s) / (plot->last_s - plot->first_s) : 0.5;
    return plot->left + share * plot->width;
}

static double y_of(const struct plot *plot, double value)
{
    double share =
        plot->most > plot->least ? (value / 2 - plot->least / 2) / (plot->most / 2 - plot->least / 2) : 0.5;
    return plot->top + (1 - share) * plot->height;
}

static size_t line_count(const struct chart *chart)
{
    size_t count = 0;
    while (count < CHART_LINES && chart->names[count])
        count++;
    return count;
}

/* ---- Bounds ---------------------------------------------------------------------------------- */

static void find_times(struct plot *plot)
{
    const struct chart *chart = plot->chart;
    plot->first_s = plot->last_s = chart->count ? time_of(chart, 0) : 0;
    for (size_t i = 0; i < chart->count; i++) {
        plot->first_s = fmin(plot->first_s, time_of(chart, i));
        plot->last_s = fmax(plot->last_s, time_of(chart, i));
    }
}

/* Returns false if no line has a value. */
static bool find_values(struct plot *plot, size_t lines)
{
    const struct chart *chart = plot->chart;
    plot->least = NAN;
    plot->most = NAN;
    for (size_t i = 0; i < chart->count; i++)
        for (size_t k = 0; k < lines; k++) {
            plot->least = fmin(plot->least, value_of(chart, i, k));
            plot->most = fmax(plot->most, value_of(chart, i, k));
        }
    return !isnan(plot->most);
}

/* A step of 1, 2 or 5 times a power of ten, so that there are at most `most` of them. */
static double find_step(double range, int most)
{
    double power = pow(10, floor(log10(range / most)));
    for (int i = 0; i < 2; i++, power *= 10)
        for (int k = 0; k < 3; k++) {
            double step = power * (k == 0 ? 1 : k == 1 ? 2 : 5);
            if (range / step <= most)
                return step;
        }
    return power;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static void put_point(struct wr_buffer *out, const struct plot *plot, char command, size_t row, double value)
{
    wr_buffer_put_char(out, command);
    page_put_fixed(out, x_of(plot, time_of(plot->chart, row)), 1);
    wr_buffer_put_char(out, ' ');
    page_put_fixed(out, y_of(plot, value), 1);
}

/* A value between two gaps is a line of no length: a dot, with round ends. */
static void put_path(struct wr_buffer *out, const struct plot *plot, size_t line, const char *class)
{
    bool is_down = false;
    wr_buffer_put_format(out, "<path class=\"%s\" d=\"", class);
    for (size_t i = 0; i < plot->chart->count; i += plot->step) {
        double value = value_of(plot->chart, i, line);
        if (isnan(value)) {
            is_down = false;
            continue;
        }
        put_point(out, plot, is_down ? 'L' : 'M', i, value);
        if (!is_down)
            wr_buffer_put_text(out, "h0");
        is_down = true;
    }
    wr_buffer_put_text(out, "\"/>");
}

/* ---- Axes ------------------------------------------------------------------------------------ */

static void put_label(struct wr_buffer *out, const char *class, double x, double y)
{
    wr_buffer_put_format(out, "<text class=\"%s\" x=\"", class);
    page_put_fixed(out, x, 1);
    wr_buffer_put_text(out, "\" y=\"");
    page_put_fixed(out, y, 1);
    wr_buffer_put_text(out, "\">");
}

static void put_line(struct wr_buffer *out, const struct plot *plot, double value)
{
    wr_buffer_put_text(out, "<path class=\"grid\" d=\"M");
    page_put_fixed(out, plot->left, 1);
    wr_buffer_put_char(out, ' ');
    page_put_fixed(out, y_of(plot, value), 1);
    wr_buffer_put_text(out, "h");
    page_put_fixed(out, plot->width, 1);
    wr_buffer_put_text(out, "\"/>");
    put_label(out, "y", plot->left - 6, y_of(plot, value) + 4);
    page_put_number(out, value);
    wr_buffer_put_text(out, "</text>");
}

static void put_axes(struct wr_buffer *out, const struct plot *plot)
{
    enum { LINES = 5, TIMES = 4 };
    double step = find_step(plot->most - plot->least, LINES), span_s = plot->last_s - plot->first_s;
    for (int i = 0; i <= LINES && plot->least + i * step <= plot->most * (1 + 1e-9); i++)
        put_line(out, plot, plot->least + i * step);
    for (int i = 0; i <= TIMES; i++) {
        static const char *const classes[] = {"x first", "x", "x last"};
        double age_s = span_s * i / TIMES;
        put_label(out,
                  classes[i == 0       ? 0
                          : i == TIMES ? 2
                                       : 1],
                  x_of(plot, plot->first_s + age_s), plot->top + plot->height + 18);
        page_put_duration(out, age_s);
        wr_buffer_put_text(out, "</text>");
        if (span_s <= 0)
            return;
    }
}

/* ---- What is pointed at ---------------------------------------------------------------------- */

static void put_tip(struct wr_buffer *out, const struct plot *plot, size_t row, size_t lines)
{
    const struct chart *chart = plot->chart;
    page_put_time(out, time_of(chart, row));
    for (size_t k = 0; k < lines; k++) {
        wr_buffer_put_format(out, "\n%s: ", chart->names[k]);
        page_put_number(out, value_of(chart, row, k));
        wr_buffer_put_format(out, " %s", chart->unit);
    }
}

/* Columns that show nothing but, when pointed at, the numbers of the row in their middle. */
static void put_tips(struct wr_buffer *out, const struct plot *plot, size_t lines)
{
    enum { COLUMNS = 100 };
    size_t count = plot->chart->count, columns = count < COLUMNS ? count : COLUMNS;
    for (size_t i = 0; i < columns; i++) {
        double from = x_of(plot, plot->first_s + (plot->last_s - plot->first_s) * (double)i / (double)columns);
        size_t row = (2 * i + 1) * count / (2 * columns);
        wr_buffer_put_text(out, "<rect x=\"");
        page_put_fixed(out, columns > 1 ? from : plot->left, 1);
        wr_buffer_put_format(out, "\" y=\"%d\" width=\"", (int)plot->top);
        page_put_fixed(out, plot->width / (double)columns, 1);
        wr_buffer_put_format(out, "\" height=\"%d\"><title>", (int)plot->height);
        put_tip(out, plot, row, lines);
        wr_buffer_put_text(out, "</title></rect>");
    }
}

/* ---- Charts ---------------------------------------------------------------------------------- */

static size_t find_row_step(size_t count, size_t most)
{
    return count > most ? (count + most - 1) / most : 1;
}

static void put_legend(struct wr_buffer *out, const struct chart *chart, size_t lines)
{
    wr_buffer_put_text(out, "<figcaption><b>");
    page_put_text(out, chart->title);
    wr_buffer_put_text(out, "</b> ");
    page_put_text(out, chart->unit);
    for (size_t k = 0; k < lines; k++) {
        wr_buffer_put_format(out, "<span class=\"key k%zu\">", k);
        page_put_text(out, chart->names[k]);
        wr_buffer_put_text(out, "</span>");
    }
    wr_buffer_put_text(out, "</figcaption>");
}

void page_put_chart(struct wr_buffer *out, const struct chart *chart)
{
    enum { WIDTH = 640, HEIGHT = 220, LEFT = 56, RIGHT = 16, TOP = 10, BOTTOM = 28, ROWS_MOST = 1000 };
    static const char *const classes[CHART_LINES] = {"line k0", "line k1", "line k2", "line k3"};
    struct plot plot = {chart, LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM, 0, 0, 0, 0, 1};
    size_t lines = line_count(chart);
    wr_buffer_put_text(out, "<figure>");
    put_legend(out, chart, lines);
    find_times(&plot);
    if (!find_values(&plot, lines)) {
        wr_buffer_put_text(out, "<p class=\"none\">not measured</p></figure>\n");
        return;
    }
    plot.least = 0;
    plot.most = fmax(plot.most, chart->most);
    plot.most = plot.most > 0 ? plot.most : 1;
    plot.step = find_row_step(chart->count, ROWS_MOST);
    wr_buffer_put_format(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    page_put_text(out, chart->title);
    wr_buffer_put_text(out, "\">");
    put_axes(out, &plot);
    for (size_t k = lines; k-- > 0;) /* the first one on top */
        put_path(out, &plot, k, classes[k]);
    put_tips(out, &plot, lines);
    wr_buffer_put_text(out, "</svg></figure>\n");
}

void page_put_sparkline(struct wr_buffer *out, const struct chart *chart)
{
    enum { WIDTH = 160, HEIGHT = 28, MARGIN = 2, ROWS_MOST = 160 };
    struct plot plot = {chart, MARGIN, MARGIN, WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN, 0, 0, 0, 0, 1};
    find_times(&plot);
    if (!find_values(&plot, 1))
        return;
    plot.step = find_row_step(chart->count, ROWS_MOST);
    wr_buffer_put_format(out, "<svg class=\"spark\" viewBox=\"0 0 %d %d\" aria-hidden=\"true\">", WIDTH,
                         HEIGHT);
    put_path(out, &plot, 0, "line k0");
    wr_buffer_put_text(out, "</svg>");
}
