/* sketch: quantiles of any number of values in bounded memory: exact of few values, and of many with a bounded
 * relative error, by DDSketch (Masson, Rim, Lee: DDSketch: a fast and fully-mergeable quantile sketch with
 * relative-error guarantees, VLDB 2019).
 *
 * Up to WR_SKETCH_VALUES distinct values are kept themselves, each with how often it came, and quantiles are
 * exact. One more turns the sketch into bins, which it keeps until it is cleared. A value falls into a bin
 * whose bounds differ by a constant factor; a sketch keeps how many values are in each bin. The reported
 * quantile is a value of the right bin, so it differs from the exact one by at most 1 %. The factor is
 * approximated by a cubic polynomial of the mantissa, so adding takes no logarithm.
 *
 * Count, smallest and largest value are exact; the sum is compensated (Neumaier), so its error does not grow
 * with the number of values.
 *
 * Size: values take 16 bytes, 4 KiB in all; at most WR_SKETCH_BINS bins, which take their place, 12 bytes:
 * 24 KiB, reached by values that spread over 58 powers of two without a gap. Beyond it the lowest bins are
 * collapsed into one: quantiles in it are too high, all others are as accurate as before.
 *
 * Merging is commutative and associative, except for the last bits of the sum: values or bins depend only on
 * what was added, not on the order in which it was added or merged.
 *
 * Not thread-safe. Needs no libm. Its memory comes from malloc, or from a slab. */
#ifndef WR_SKETCH_H
#define WR_SKETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wr_slab;

enum { WR_SKETCH_VALUES = 256, WR_SKETCH_BINS = 2048, WR_SKETCH_BYTES = WR_SKETCH_BINS * 12 };

/* All zeros: empty. Private, except for setting `slab` of an empty one, and for reading `count`, `min` and
 * `max`, and, of one that is not binned, `values` and `counts`. */
struct wr_sketch {
    struct wr_slab *slab; /* where its memory comes from; NULL: malloc */
    uint64_t count;
    double min, max;          /* with count 0: not set */
    double sum, compensation; /* the sum is that of both */
    bool is_binned;           /* false: it has the values themselves */
    bool collapsed;           /* the lowest bin also holds values of lower bins */
    uint32_t entries;         /* values or bins in use */
    uint32_t last;            /* the one that was found last */
    uint32_t keys_room, counts_room;
    union { /* one block of memory, with room for `keys_room` keys; ascending */
        double *values;
        int32_t *keys;
    };
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

/* Adds a value. Allocates only for a new value or bin. Unless the result is WR_SKETCH_OK, nothing has changed.
 */
enum wr_sketch_result wr_sketch_add(struct wr_sketch *sketch, double value);

/* The same for a value that came `count` times, 0 of them included. */
enum wr_sketch_result wr_sketch_add_many(struct wr_sketch *sketch, double value, uint64_t count);

/* Adds all values of `from`, which may be the same sketch. Returns false if out of memory; then nothing has
 * changed. */
bool wr_sketch_merge(struct wr_sketch *into, const struct wr_sketch *from);

/* Returns the sum of the values; infinite if it exceeds what a double can hold. */
double wr_sketch_sum(const struct wr_sketch *sketch);

/* Returns the value of this rank, 1 to `count`, in ascending order: exactly as long as the sketch is not
 * binned, and then within 1 %, but never outside the smallest and the largest value. The sketch must not be
 * empty. */
double wr_sketch_at_rank(const struct wr_sketch *sketch, uint64_t rank);

/* The same for the nearest rank: that of the smallest value that at least the share q of all values do not
 * exceed. q: 0..1. */
double wr_sketch_quantile(const struct wr_sketch *sketch, double q);

#endif
