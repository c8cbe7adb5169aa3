/* moments: of a sketch's values, the sums and the standard deviation. Like quantiles they are exact of few
 * distinct values. Of bins, each value counts as one that differs from it by at most 1 %, so a sum of values of
 * one sign does, too, and the deviation by at most 1 % of the values' root mean square. */
#ifndef WR_MOMENTS_H
#define WR_MOMENTS_H

#include <stdint.h>

struct wr_sketch;

struct wr_moments {
    double sum, squares; /* infinite if they exceed what a double can hold */
};

/* Returns the sums of the `rank` smallest values, at most `count`, and of their squares. */
struct wr_moments wr_moments_of(const struct wr_sketch *sketch, uint64_t rank);

/* Returns the standard deviation of all values, those being the population. The sketch must not be empty. */
double wr_moments_deviation(const struct wr_sketch *sketch);

#endif
