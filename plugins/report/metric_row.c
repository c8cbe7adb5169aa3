#include "metric_row.h"

#include <math.h>

void metric_row_init(struct metric_row *row, const weir_series *series, size_t points_most)
{
    *row = (struct metric_row){.series = series};
    collector_init(&row->points, METRIC_POINT, points_most);
}

void metric_row_fini(struct metric_row *row)
{
    wr_sketch_fini(&row->sketch);
    collector_fini(&row->points);
}

/* Sets what to add of a running total. A total that has become smaller began anew. Returns false for the first
 * one: what it counts from is not known. */
static bool find_growth(struct metric_row *row, double total, double *growth)
{
    double before = row->total;
    bool had_total = row->has_total;
    row->total = total;
    row->has_total = true;
    *growth = total >= before ? total - before : total;
    return had_total;
}

bool metric_row_put(struct metric_row *row, int64_t time_ns, double value)
{
    if (!isfinite(value)) {
        row->others++;
        return true;
    }
    const struct metric_row before = *row;
    if (row->series->cumulative && !find_growth(row, value, &value))
        return true;
    const double point[METRIC_POINT] = {[METRIC_TIME] = (double)time_ns / 1e9, [METRIC_VALUE] = value};
    bool is_finite = isfinite(value); /* two totals may be too far apart */
    if (is_finite && wr_sketch_add(&row->sketch, value) == WR_SKETCH_NO_MEMORY) {
        row->total = before.total;
        row->has_total = before.has_total;
        return false;
    }
    row->others += !is_finite;
    row->last = is_finite ? value : row->last;
    if (is_finite)
        (void)collector_offer(&row->points, point); /* without memory a point is missing, no value */
    return true;
}

double metric_row_mean(const struct metric_row *row)
{
    double sum = wr_sketch_sum(&row->sketch);
    if (!row->sketch.count)
        return NAN;
    if (isfinite(sum))
        return sum / (double)row->sketch.count;
    return row->sketch.min / 2 + row->sketch.max / 2; /* between them: the sum is too large for a double */
}
