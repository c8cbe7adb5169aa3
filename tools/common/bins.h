/* bins: the course of a series in a fixed number of bins of time, for bars: when it takes longer than the bins
 * last, two become one. */
#ifndef WEIR_TOOLS_BINS_H
#define WEIR_TOOLS_BINS_H

#include <stddef.h>
#include <stdint.h>

enum { BINS = 64 };

/* All zeros: empty. */
struct bins {
    int64_t bin_ns; /* the length of one; 0: a millisecond */
    double sums[BINS];
    uint64_t counts[BINS];
};

/* Adds a value at a time since the beginning; before it counts as at it, and more than a year as a year. */
void bins_put(struct bins *bins, int64_t age_ns, double value);

/* The means of equal parts of the duration, at most `columns`; NAN where there was no value. Returns how many.
 */
size_t bins_find_means(const struct bins *bins, int64_t duration_ns, size_t columns, double *means);

#endif
