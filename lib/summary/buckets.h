/* buckets: the bounds of a histogram's buckets. */
#ifndef WR_BUCKETS_H
#define WR_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

/* Returns the rising upper bounds of a series' buckets, and sets *count: those that are declared; else, if the
 * unit is one of time (s, ms, us, ns), steps from 10 us to 10 s, which contain OpenTelemetry's default for
 * durations; else powers of two, 1 to 2^20. Valid as long as the series. There is one more bucket, for what is
 * above the last bound. */
const double *wr_buckets_of(const weir_series *series, size_t *count);

/* The most buckets: one more than the most bounds. */
enum { WR_BUCKETS_MOST = 201 };

/* Two doubles at once, where a machine can. */
typedef double __attribute__((vector_size(16), aligned(8), may_alias)) wr_bounds_pair;
typedef int64_t __attribute__((vector_size(16))) wr_bounds_found;

/* Returns the bucket of a value: the first whose bound is not below it. Without a branch that depends on the
 * value, which nobody could predict. */
static inline size_t wr_buckets_find(const double *bounds, size_t count, double value)
{
    size_t first = 0, i = 0;
    while (count > 16) {
        size_t half = count / 2;
        first += -(size_t)(bounds[first + half - 1] < value) & half;
        count -= half;
    }
    const double *rest = bounds + first;
    wr_bounds_found found = {0, 0}; /* of each that is below, -1 */
    for (; i + 1 < count; i += 2)
        found += *(const wr_bounds_pair *)(rest + i) < (wr_bounds_pair){value, value};
    return first - (size_t)(found[0] + found[1]) + (i < count && rest[i] < value);
}

/* Returns a checksum of the bounds: a summary has it, since a histogram's buckets may be declared anew. */
uint32_t wr_buckets_check(const double *bounds, size_t count);

#endif
