/* bucket_series: bounds of buckets that a text describes: "exponential(0.0001, 2, 20)", "linear(0, 0.5, 10)".
 */
#ifndef WR_BUCKET_SERIES_H
#define WR_BUCKET_SERIES_H

#include <stddef.h>

#include "registry/family.h"

/* Reads "exponential(START, FACTOR, COUNT)", whose bounds are START * FACTOR^i, or "linear(START, WIDTH,
 * COUNT)", whose bounds are START + WIDTH * i, i from 0 to COUNT - 1; blanks are allowed. Writes the rising,
 * finite bounds, each the double that is nearest to the decimal number where that can be told, and returns
 * COUNT, 1 to WR_FAMILY_BUCKETS_MAX; 0: the text is invalid, and *problem, a static text, says why. */
size_t wr_bucket_series_read(const char *text, double bounds[WR_FAMILY_BUCKETS_MAX], const char **problem);

#endif
