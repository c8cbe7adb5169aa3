/* page_chart: lines over time as SVG, without scripts. */
#ifndef WEIR_PLUGINS_PAGE_CHART_H
#define WEIR_PLUGINS_PAGE_CHART_H

#include <stddef.h>

struct wr_buffer;

enum { CHART_LINES = 4 };

/* Points of lines that share their times: row i has its time in rows[i * width + time], and that of line k in
 * rows[i * width + columns[k]]. NAN: a gap. */
struct chart {
    const char *title, *unit;
    const char *names[CHART_LINES]; /* NULL ends the list */
    size_t columns[CHART_LINES];
    const double *rows;
    size_t count, width, time;
    double scale; /* by which values are multiplied; 0: 1 */
    double most;  /* the axis goes up to here at least; 0: as far as the values do */
};

/* Appends a figure with axes, a legend, and the numbers of the place that is pointed at. */
void page_put_chart(struct wr_buffer *out, const struct chart *chart);

/* Appends the course of the first line of a chart, as small as a word. */
void page_put_sparkline(struct wr_buffer *out, const struct chart *chart);

#endif
