#include "top_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/command.h"
#include "text/common.h"
#include "top_series.h"

/* ---- Figures --------------------------------------------------------------------------------- */

/* A total that is lower than before has begun again at 0. */
static bool has_restarted(const struct top_series *series)
{
    return series->value < series->before;
}

static double find_increase(const struct top_series *series)
{
    if (series->kind == TOP_GAUGE || !has_restarted(series))
        return series->value - series->before;
    return series->value;
}

static double find_mean(const struct top_series *series, double count)
{
    double sum = has_restarted(series) ? series->sum : series->sum - series->sum_before;
    return sum / count;
}

/* As histogram_quantile of Prometheus: linear within the bucket, whose lower bound is 0 if it is the first and
 * its upper one is positive; above the last bound that is a number, that one. */
static double find_p99(const struct top_series *series)
{
    const struct top_bucket *buckets = series->bucket_array;
    uint32_t last = series->buckets - 1;
    bool is_new = has_restarted(series);
    if (series->has_other_bounds || series->buckets < 2 || !isinf(buckets[last].upper))
        return NAN;
    double all = buckets[last].now - (is_new ? 0 : buckets[last].before), rank = 0.99 * all;
    double below = 0, lower = buckets[0].upper > 0 ? 0 : buckets[0].upper;
    if (!(all > 0))
        return NAN;
    for (uint32_t i = 0; i < last; i++) {
        /* not lower than the bucket below, also if the page was made while values were added */
        double to_here = fmax(below, buckets[i].now - (is_new ? 0 : buckets[i].before));
        if (to_here >= rank && to_here > below)
            return lower + (buckets[i].upper - lower) * (rank - below) / (to_here - below);
        below = to_here;
        lower = buckets[i].upper;
    }
    return lower;
}

/* From 0 to 2: a level that falls below 0 changes by more than the larger one. */
static double find_share(const struct top_series *series)
{
    return fabs(series->value - series->before) / fmax(fabs(series->value), fabs(series->before));
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static int compare_numbers(double one, double other)
{
    return one > other ? -1 : one < other;
}

static int compare_keys(const struct top_series *one, const struct top_series *other)
{
    size_t shorter = one->key_length < other->key_length ? one->key_length : other->key_length;
    int result = memcmp(one->key, other->key, shorter);
    return result ? result : (one->key_length > other->key_length) - (one->key_length < other->key_length);
}

static int compare(const void *a, const void *b)
{
    const struct top_row *one = a, *other = b;
    bool is_gauge = one->series->kind == TOP_GAUGE;
    if (is_gauge != (other->series->kind == TOP_GAUGE))
        return is_gauge ? 1 : -1;
    int result = compare_numbers(one->order, other->order);
    if (!result)
        result = compare_numbers(fabs(one->increase), fabs(other->increase));
    return result ? result : compare_keys(one->series, other->series);
}

static struct top_row make_row(const struct top_series *series, double increase, double passed_s)
{
    struct top_row row = {.series = series, .increase = increase, .per_s = NAN, .mean = NAN, .p99 = NAN};
    if (series->kind == TOP_GAUGE) {
        row.order = find_share(series);
        return row;
    }
    row.order = row.per_s = increase / passed_s;
    if (series->kind != TOP_COUNTER)
        row.mean = find_mean(series, increase);
    if (series->kind == TOP_HISTOGRAM)
        row.p99 = find_p99(series);
    return row;
}

struct top_rows top_rows_find(const struct top_table *table, int64_t passed_ns)
{
    struct top_rows found = {.series = table->count, .passed_s = (double)passed_ns / WR_NS_PER_S};
    found.rows = command_must(calloc((size_t)table->count + 1, sizeof *found.rows));
    for (uint32_t i = 0; i < table->count; i++) {
        const struct top_series *series = table->series[i];
        double increase = find_increase(series);
        if (!series->has_before || !isfinite(increase) || increase == 0)
            continue;
        const struct top_row row = make_row(series, increase, found.passed_s);
        found.rows[found.count++] = row;
        found.gauges += series->kind == TOP_GAUGE;
        found.per_s += series->kind == TOP_GAUGE ? 0 : row.per_s;
    }
    qsort(found.rows, found.count, sizeof *found.rows, compare);
    return found;
}

void top_rows_fini(struct top_rows *rows)
{
    free(rows->rows);
    *rows = (struct top_rows){0};
}
