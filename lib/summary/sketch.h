/* sketch: quantiles of any number of values in bounded memory, with a bounded relative error: DDSketch (Masson,
 * Rim, Lee: DDSketch: a fast and fully-mergeable quantile sketch with relative-error guarantees, VLDB 2019).
 *
 * A value falls into a bin whose bounds differ by a constant factor; a sketch keeps how many values are in each
 * bin. The reported quantile is a value of the right bin, so it differs from the exact one by at most 1 %. The
 * factor is approximated by a cubic polynomial of the mantissa, so adding takes no logarithm.
 *
 * Count, smallest and largest value are exact; the sum is compensated (Neumaier), so its error does not grow
 * with the number of values.
 *
 * Size: at most WR_SKETCH_BINS bins of 12 bytes: 24 KiB, reached by values that spread over 58 powers of two
 * without a gap. Beyond it the lowest bins are collapsed into one: quantiles in it are too high, all others are
 * as accurate as before.
 *
 * Merging is commutative and associative, except for the last bits of the sum: the bins depend only on the
 * values, not on the order in which they were added or merged.
 *
 * Not thread-safe. Needs no libm. Its memory comes from malloc, or from a slab. */
#ifndef WR_SKETCH_H
#define WR_SKETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wr_slab;

enum { WR_SKETCH_BINS = 2048, WR_SKETCH_BYTES = WR_SKETCH_BINS * 12 };

/* All zeros: empty. Private, except for setting `slab` of an empty one, and for reading `count`, `min` and
 * `max`. */
struct wr_sketch {
    struct wr_slab *slab; /* where its memory comes from; NULL: malloc */
    uint64_t count;
    double min, max;          /* with count 0: not set */
    double sum, compensation; /* the sum is that of both */
    bool collapsed;           /* the lowest bin also holds values of lower bins */
    uint32_t bins, last;      /* in use; the one that was found last */
    uint32_t keys_room, counts_room;
    int32_t *keys; /* ascending */
    uint64_t *counts;
};

enum wr_sketch_result {
    WR_SKETCH_OK,
    WR_SKETCH_NOT_FINITE, /* infinite, or NaN, which callers refuse before */
    WR_SKETCH_NO_MEMORY,
};

/* Frees the memory; the sketch is empty then. */
void wr_sketch_fini(struct wr_sketch *sketch);

/* Removes all values and keeps the memory. */
void wr_sketch_clear(struct wr_sketch *sketch);

/* Adds a value. Allocates only when bins are added. Unless the result is WR_SKETCH_OK, nothing has changed. */
enum wr_sketch_result wr_sketch_add(struct wr_sketch *sketch, double value);

/* The same for a value that came `count` times, 0 of them included. */
enum wr_sketch_result wr_sketch_add_many(struct wr_sketch *sketch, double value, uint64_t count);

/* Adds all values of `from`, which may be the same sketch. Returns false if out of memory; then nothing has
 * changed. */
bool wr_sketch_merge(struct wr_sketch *into, const struct wr_sketch *from);

/* Returns the sum of the values; infinite if it exceeds what a double can hold. */
double wr_sketch_sum(const struct wr_sketch *sketch);

/* Returns a value within 1 % of the nearest rank: the smallest value that at least the share q of all values do
 * not exceed; never outside the smallest and the largest value. q: 0..1. The sketch must not be empty. */
double wr_sketch_quantile(const struct wr_sketch *sketch, double q);

#endif
