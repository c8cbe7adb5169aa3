/* top_rows: what has moved between two pages, the fastest first. */
#ifndef WEIR_TOOLS_TOP_ROWS_H
#define WEIR_TOOLS_TOP_ROWS_H

#include <stddef.h>
#include <stdint.h>

struct top_series;
struct top_table;

/* A figure is NAN if there is none. */
struct top_row {
    const struct top_series *series;
    /* of a total or of a number of observations; of a gauge the change, which may be negative */
    double increase;
    double per_s;     /* not of a gauge */
    double mean, p99; /* of what a histogram or summary has observed */
    double order;     /* the larger, the higher in the table */
};

/* First what has a rate, by that; then gauges, by their change relative to the larger of both levels. */
struct top_rows {
    struct top_row *rows;
    size_t count, gauges; /* count: with the gauges */
    size_t series;
    double per_s;    /* of all that have a rate */
    double passed_s; /* between the pages */
};

/* Finds the rows; the caller frees them by top_rows_fini. The series are borrowed. */
struct top_rows top_rows_find(const struct top_table *table, int64_t passed_ns);
void top_rows_fini(struct top_rows *rows);

#endif
