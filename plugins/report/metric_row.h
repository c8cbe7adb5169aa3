/* metric_row: what is kept of one series: exact count, sum and extremes, a sketch for quantiles, and at most a
 * given number of its values, evenly spaced. */
#ifndef WEIR_PLUGINS_METRIC_ROW_H
#define WEIR_PLUGINS_METRIC_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

#include "collector.h"
#include "summary/sketch.h"

enum { METRIC_TIME, METRIC_VALUE, METRIC_POINT }; /* of a point: seconds since 1970, and the value */

struct metric_row {
    const weir_series *series; /* kept as long as the row is in a report */
    struct wr_sketch sketch;   /* of the finite values */
    uint64_t others;           /* NaN and infinite ones */
    double last;
    double total; /* of a series of running totals, the last one */
    bool has_total;
    struct collector points;
};

void metric_row_init(struct metric_row *row, const weir_series *series, size_t points_most);
void metric_row_fini(struct metric_row *row);

/* Adds a value. Of running totals, what they have grown by since the previous one. Returns false if out of
 * memory; then nothing has changed. */
bool metric_row_put(struct metric_row *row, int64_t time_ns, double value);

/* The mean; NAN: there is none. */
double metric_row_mean(const struct metric_row *row);

#endif
