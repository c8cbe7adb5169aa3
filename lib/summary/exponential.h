/* exponential: the values of a sketch as the buckets of an exponential histogram, as OpenTelemetry defines it:
 * a bucket's bounds differ by the factor 2^(2^-scale), and it holds its upper bound. Negative values have
 * buckets of their own, by their magnitude.
 *
 * Values that the sketch has itself go to their own buckets. A bin of it goes as a whole to the bucket of its
 * representative value, which differs from the bin's values by at most 1 %. The finest scale has the largest
 * factor below that of the bins, so the middle of a bucket differs from them by at most 1.6 %. Each coarser
 * scale halves the buckets, and doubles what they add to the 1 %: see doc/config.md. */
#ifndef WR_EXPONENTIAL_H
#define WR_EXPONENTIAL_H

#include <stdint.h>

struct wr_sketch;

/* With three buckets the scale -10 holds every double. */
enum { WR_EXPONENTIAL_SCALE = 6, WR_EXPONENTIAL_LEAST = 3, WR_EXPONENTIAL_MOST = 2048 };

struct wr_exponential_buckets {
    int32_t offset; /* bucket i has magnitudes above 2^(2^-scale * (offset + i)) */
    uint32_t count;
    uint64_t counts[WR_EXPONENTIAL_MOST];
};

struct wr_exponential {
    int32_t scale;
    uint64_t zero_count; /* of exact zeros */
    struct wr_exponential_buckets positive, negative;
};

/* Makes the histogram, with the finest scale at which neither the positive nor the negative values need more
 * than `most` buckets; most: WR_EXPONENTIAL_LEAST to WR_EXPONENTIAL_MOST. */
void wr_exponential_make(struct wr_exponential *histogram, const struct wr_sketch *sketch, uint32_t most);

#endif
