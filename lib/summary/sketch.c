#include "summary/sketch.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "os/slab.h"
#include "summary/neumaier.h"
#include "summary/sketch_internal.h"
#include "text/array.h"
#include "text/common.h"

/* ---- Bins ------------------------------------------------------------------------------------ */

/* The position of x = 2^e * (1 + s) is e + P(s), with P(s) = ((A*s + B)*s + C)*s, which replaces log2(x): its
 * derivative by ln x is at least C = 10/7 and at most 1.486, where that of log2 is 1.443. With BINS_PER_OCTAVE
 * = 0.7 / ln((1 + ERROR) / (1 - ERROR)) the bounds of a bin differ at most by the factor (1 + ERROR) / (1 -
 * ERROR). ERROR is a little less than 1 %, for rounding, of this constant too. */
#define A (6.0 / 35)
#define B (-3.0 / 5)
#define C (10.0 / 7)
#define ERROR 0.0099
#define BINS_PER_OCTAVE 35.352

enum { FIRST_KEY = 38100, MANTISSA_BITS = 52, EXPONENT_BIAS = 1023, SUBNORMAL_SHIFT = 54 };

union bits {
    double f64;
    uint64_t u64;
};

/* Returns 2^exponent; exponent: -1022..1023. */
static double power_of_2(int exponent)
{
    return (union bits){.u64 = (uint64_t)(exponent + EXPONENT_BIAS) << MANTISSA_BITS}.f64;
}

/* magnitude: greater than 0. The keys are positive, so that the conversion rounds down. */
WR_ALWAYS_INLINE int32_t key_of(double magnitude)
{
    double shift = FIRST_KEY;
    if (WR_UNLIKELY(magnitude < DBL_MIN)) {
        magnitude *= 0x1p54;
        shift -= SUBNORMAL_SHIFT * BINS_PER_OCTAVE;
    }
    union bits bits = {.f64 = magnitude};
    int exponent = (int)(bits.u64 >> MANTISSA_BITS) - EXPONENT_BIAS;
    bits.u64 = (bits.u64 & ((UINT64_C(1) << MANTISSA_BITS) - 1)) | (uint64_t)EXPONENT_BIAS << MANTISSA_BITS;
    double s = bits.f64 - 1;
    return (int32_t)((exponent + ((A * s + B) * s + C) * s) * BINS_PER_OCTAVE + shift);
}

int32_t wr_sketch_key(double value)
{
    return value > 0 ? key_of(value) : value < 0 ? -key_of(-value) : 0;
}

/* Returns the lower bound of the bin of a positive key; the inverse of key_of. */
static double lower_bound(int32_t key)
{
    enum { STEPS = 6, LARGEST = 1023, SMALLEST = -1022 };
    double position = (key - FIRST_KEY) / BINS_PER_OCTAVE;
    int exponent = (int)position - (position < (int)position);
    double rest = position - exponent, s = rest;
    for (int i = 0; i < STEPS; i++) /* Newton; P is steep everywhere */
        s -= (((A * s + B) * s + C) * s - rest) / ((3 * A * s + 2 * B) * s + C);
    if (exponent > LARGEST)
        return DBL_MAX;
    if (exponent < SMALLEST)
        return (1 + s) * power_of_2(exponent + SUBNORMAL_SHIFT) * 0x1p-54;
    return (1 + s) * power_of_2(exponent);
}

/* The harmonic mean of the bounds has the smallest error relative to both. */
static double value_of(int32_t key)
{
    double low = lower_bound(key), high = lower_bound(key + 1);
    return high > 0 ? low * (2 / (1 + low / high)) : 0;
}

double wr_sketch_value(int32_t key)
{
    return key > 0 ? value_of(key) : key < 0 ? -value_of(-key) : 0;
}

/* ---- Finding and adding bins ----------------------------------------------------------------- */

/* Returns the first bin whose key is not smaller. */
static uint32_t find(const struct wr_sketch *sketch, int32_t key)
{
    uint32_t first = 0, count = sketch->bins;
    while (count) {
        uint32_t half = count / 2;
        bool above = sketch->keys[first + half] < key;
        first = above ? first + half + 1 : first;
        count = above ? count - half - 1 : half;
    }
    return first;
}

/* Most bins lie side by side: then the distance of two keys is that of their places. Returns the place of the
 * key, or `bins` if this does not find it. */
WR_ALWAYS_INLINE uint32_t guess(const struct wr_sketch *sketch, int32_t key)
{
    if (!sketch->bins)
        return 0;
    uint32_t at = sketch->last + (uint32_t)(key - sketch->keys[sketch->last]);
    return at < sketch->bins && sketch->keys[at] == key ? at : sketch->bins;
}

static void *reserve_items(struct wr_sketch *sketch, void *items, uint32_t *room, uint32_t count, size_t size)
{
    return sketch->slab ? wr_slab_reserve(sketch->slab, items, room, count, size)
                        : wr_array_reserve(items, room, count, size);
}

static bool reserve(struct wr_sketch *sketch, uint32_t bins)
{
    void *keys = reserve_items(sketch, sketch->keys, &sketch->keys_room, bins, sizeof *sketch->keys);
    if (keys)
        sketch->keys = keys;
    void *counts = reserve_items(sketch, sketch->counts, &sketch->counts_room, bins, sizeof *sketch->counts);
    if (counts)
        sketch->counts = counts;
    return keys && counts;
}

/* Moves the bins from `first` to `end` by one place. */
static void move(struct wr_sketch *sketch, uint32_t to, uint32_t first, uint32_t end)
{
    memmove(sketch->keys + to, sketch->keys + first, (end - first) * sizeof *sketch->keys);
    memmove(sketch->counts + to, sketch->counts + first, (end - first) * sizeof *sketch->counts);
}

/* Makes an empty bin at `at`, where its key belongs, and collapses the lowest one if there are too many.
 * Returns its place, which is that of the lowest bin if the new one itself is collapsed; -1: out of memory. */
static int64_t insert(struct wr_sketch *sketch, uint32_t at, int32_t key)
{
    bool full = sketch->bins == WR_SKETCH_BINS;
    if (!full && !reserve(sketch, sketch->bins + 1))
        return -1;
    sketch->collapsed = sketch->collapsed || full;
    if (full && at == 0)
        return 0;
    if (full) {
        uint64_t lowest = sketch->counts[0];
        move(sketch, 0, 1, at--);
        sketch->keys[at] = key;
        sketch->counts[at] = 0;
        sketch->counts[0] += lowest;
        return at;
    }
    move(sketch, at + 1, at, sketch->bins);
    sketch->keys[at] = key;
    sketch->counts[at] = 0;
    sketch->bins++;
    return at;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

static void note_extremes(struct wr_sketch *sketch, double min, double max)
{
    sketch->min = sketch->count && sketch->min < min ? sketch->min : min;
    sketch->max = sketch->count && sketch->max > max ? sketch->max : max;
}

enum wr_sketch_result wr_sketch_add_many(struct wr_sketch *sketch, double value, uint64_t count)
{
    if (WR_UNLIKELY(!isfinite(value)))
        return WR_SKETCH_NOT_FINITE;
    if (WR_UNLIKELY(!count))
        return WR_SKETCH_OK;
    int32_t key = wr_sketch_key(value);
    uint32_t at = guess(sketch, key);
    if (at == sketch->bins) {
        at = find(sketch, key);
        if (at == sketch->bins || sketch->keys[at] != key) {
            int64_t place = insert(sketch, at, key);
            if (place < 0)
                return WR_SKETCH_NO_MEMORY;
            at = (uint32_t)place;
        }
        sketch->last = at;
    }
    sketch->counts[at] += count;
    note_extremes(sketch, value + 0.0, value + 0.0); /* -0 becomes 0 */
    wr_neumaier_add(&sketch->sum, &sketch->compensation, value * (double)count);
    sketch->count += count;
    return WR_SKETCH_OK;
}

enum wr_sketch_result wr_sketch_add(struct wr_sketch *sketch, double value)
{
    return wr_sketch_add_many(sketch, value, 1);
}

double wr_sketch_sum(const struct wr_sketch *sketch)
{
    return sketch->sum + sketch->compensation;
}

static void free_bins(const struct wr_sketch *sketch)
{
    if (sketch->slab) {
        wr_slab_put(sketch->slab, sketch->keys, sketch->keys_room * sizeof *sketch->keys);
        wr_slab_put(sketch->slab, sketch->counts, sketch->counts_room * sizeof *sketch->counts);
        return;
    }
    free(sketch->keys);
    free(sketch->counts);
}

void wr_sketch_fini(struct wr_sketch *sketch)
{
    free_bins(sketch);
    *sketch = (struct wr_sketch){.slab = sketch->slab};
}

void wr_sketch_clear(struct wr_sketch *sketch)
{
    sketch->count = 0;
    sketch->sum = sketch->compensation = 0;
    sketch->collapsed = false;
    sketch->bins = sketch->last = 0;
}

/* ---- Merging --------------------------------------------------------------------------------- */

/* Merges the bins into `merged`, which has room for all of them, from the highest to the lowest; those for
 * which there are too many are collapsed. Returns how many there are, in descending order. */
static uint32_t merge_bins(const struct wr_sketch *a, const struct wr_sketch *b, struct wr_sketch *merged)
{
    uint32_t i = a->bins, j = b->bins, bins = 0;
    while (i || j) {
        bool from_a = i && (!j || a->keys[i - 1] >= b->keys[j - 1]);
        bool from_b = j && (!i || b->keys[j - 1] >= a->keys[i - 1]);
        int32_t key = from_a ? a->keys[i - 1] : b->keys[j - 1];
        uint64_t count = 0;
        if (from_a)
            count += a->counts[--i];
        if (from_b)
            count += b->counts[--j];
        if (bins == WR_SKETCH_BINS) {
            merged->counts[bins - 1] += count;
            merged->collapsed = true;
            continue;
        }
        merged->keys[bins] = key;
        merged->counts[bins++] = count;
    }
    return bins;
}

static void reverse(struct wr_sketch *sketch)
{
    for (uint32_t i = 0, j = sketch->bins; i + 1 < j; i++) {
        int32_t key = sketch->keys[--j];
        uint64_t count = sketch->counts[j];
        sketch->keys[j] = sketch->keys[i];
        sketch->counts[j] = sketch->counts[i];
        sketch->keys[i] = key;
        sketch->counts[i] = count;
    }
}

bool wr_sketch_merge(struct wr_sketch *into, const struct wr_sketch *from)
{
    struct wr_sketch merged = {.slab = into->slab, .collapsed = into->collapsed || from->collapsed};
    uint32_t most = into->bins + from->bins;
    if (!from->count)
        return true;
    if (!reserve(&merged, most < WR_SKETCH_BINS ? most : WR_SKETCH_BINS)) {
        wr_sketch_fini(&merged);
        return false;
    }
    merged.bins = merge_bins(into, from, &merged);
    reverse(&merged);
    double sum = from->sum, compensation = from->compensation;
    note_extremes(into, from->min, from->max);
    wr_neumaier_add(&into->sum, &into->compensation, sum);
    into->compensation += compensation;
    into->count += from->count;
    free_bins(into);
    into->keys = merged.keys;
    into->counts = merged.counts;
    into->keys_room = merged.keys_room;
    into->counts_room = merged.counts_room;
    into->bins = merged.bins;
    into->collapsed = merged.collapsed;
    into->last = 0;
    return true;
}

/* ---- Quantiles ------------------------------------------------------------------------------- */

double wr_sketch_quantile(const struct wr_sketch *sketch, double q)
{
    /* The index of the nearest rank: a share of exactly n values leads to that before n. The product may be
     * computed as slightly more than n, which is why it is made smaller. */
    double share = q * (double)sketch->count * (1 - 4 * DBL_EPSILON);
    uint64_t below = 0, wanted = share < (double)sketch->count ? (uint64_t)share : sketch->count - 1;
    if (wanted == 0)
        return sketch->min;
    if (wanted >= sketch->count - 1)
        return sketch->max;
    uint32_t bin = 0;
    while (bin + 1 < sketch->bins && (below += sketch->counts[bin]) <= wanted)
        bin++;
    double value = wr_sketch_value(sketch->keys[bin]);
    return value < sketch->min ? sketch->min : value > sketch->max ? sketch->max : value;
}
