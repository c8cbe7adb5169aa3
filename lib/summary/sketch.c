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

/* ---- Values and bins ------------------------------------------------------------------------- */

/* Returns the first value that is not smaller. Without branches, which would be as good as never predicted. */
static uint32_t search_values(const struct wr_sketch *sketch, double value)
{
    uint32_t first = 0;
    for (uint32_t count = sketch->entries, half; count; count -= half) {
        half = (count + 1) / 2;
        first += half & -(uint32_t)(sketch->values[first + half - 1] < value);
    }
    return first;
}

/* Returns the first bin whose key is not smaller; as above. */
static uint32_t search_keys(const struct wr_sketch *sketch, int32_t key)
{
    uint32_t first = 0;
    for (uint32_t count = sketch->entries, half; count; count -= half) {
        half = (count + 1) / 2;
        first += half & -(uint32_t)(sketch->keys[first + half - 1] < key);
    }
    return first;
}

static void *reserve_items(struct wr_sketch *sketch, void *items, uint32_t *room, uint32_t count, size_t size)
{
    return sketch->slab ? wr_slab_reserve(sketch->slab, items, room, count, size)
                        : wr_array_reserve(items, room, count, size);
}

bool wr_sketch_reserve(struct wr_sketch *sketch, uint32_t keys, uint32_t counts)
{
    int32_t *new_keys = reserve_items(sketch, sketch->keys, &sketch->keys_room, keys, sizeof *new_keys);
    if (new_keys)
        sketch->keys = new_keys;
    uint64_t *new_counts =
        reserve_items(sketch, sketch->counts, &sketch->counts_room, counts, sizeof *new_counts);
    if (new_counts)
        sketch->counts = new_counts;
    return new_keys && new_counts;
}

static bool reserve_bins(struct wr_sketch *sketch, uint32_t bins)
{
    return wr_sketch_reserve(sketch, bins, bins);
}

static bool reserve_values(struct wr_sketch *sketch, uint32_t values)
{
    return wr_sketch_reserve(sketch, values * WR_SKETCH_KEYS_OF_VALUE, values);
}

/* Moves the bins from `first` to `end` by one place. */
static void move(struct wr_sketch *sketch, uint32_t to, uint32_t first, uint32_t end)
{
    memmove(sketch->keys + to, sketch->keys + first, (end - first) * sizeof *sketch->keys);
    memmove(sketch->counts + to, sketch->counts + first, (end - first) * sizeof *sketch->counts);
}

/* Makes an empty bin at `at`, where its key belongs, and collapses the lowest one if there are too many.
 * Returns its place, which is that of the lowest bin if the new one itself is collapsed; -1: out of memory. */
static int64_t insert_bin(struct wr_sketch *sketch, uint32_t at, int32_t key)
{
    bool full = sketch->entries == WR_SKETCH_BINS;
    if (!full && !reserve_bins(sketch, sketch->entries + 1))
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
    move(sketch, at + 1, at, sketch->entries);
    sketch->keys[at] = key;
    sketch->counts[at] = 0;
    sketch->entries++;
    return at;
}

/* Returns the place of the bin with this key, which is made if there is none; -1: out of memory. */
static int64_t find_key(struct wr_sketch *sketch, int32_t key)
{
    int64_t at = search_keys(sketch, key);
    if (at == sketch->entries || sketch->keys[at] != key)
        at = insert_bin(sketch, (uint32_t)at, key);
    if (at >= 0)
        sketch->last = (uint32_t)at;
    return at;
}

/* Returns the place of the value's bin, as find_key. Most bins lie side by side: then the distance of two keys
 * is that of their places. */
WR_ALWAYS_INLINE int64_t find_bin(struct wr_sketch *sketch, double value)
{
    int32_t key = wr_sketch_key(value);
    uint32_t at = sketch->last + (uint32_t)(key - sketch->keys[sketch->last]);
    return at < sketch->entries && sketch->keys[at] == key ? at : find_key(sketch, key);
}

/* Returns how many bins the values are in. */
static uint32_t count_bins(const struct wr_sketch *sketch)
{
    uint32_t bins = 0;
    int32_t before = INT32_MIN;
    for (uint32_t i = 0; i < sketch->entries; i++) {
        int32_t key = wr_sketch_key(sketch->values[i]);
        bins += key != before;
        before = key;
    }
    return bins;
}

/* Puts each value into its bin; in place, since a bin takes less room. Leaves room for another bin. Returns
 * false if out of memory; then nothing has changed. */
static bool turn_into_bins(struct wr_sketch *sketch)
{
    uint32_t bins = 0;
    if (!reserve_bins(sketch, count_bins(sketch) + 1))
        return false;
    for (uint32_t i = 0; i < sketch->entries; i++) {
        int32_t key = wr_sketch_key(sketch->values[i]);
        uint64_t count = sketch->counts[i];
        if (bins && sketch->keys[bins - 1] == key) {
            sketch->counts[bins - 1] += count;
            continue;
        }
        sketch->keys[bins] = key;
        sketch->counts[bins++] = count;
    }
    sketch->is_binned = true;
    sketch->entries = bins;
    sketch->last = 0;
    return true;
}

static bool insert_value(struct wr_sketch *sketch, uint32_t at, double value)
{
    if (!reserve_values(sketch, sketch->entries + 1))
        return false;
    uint32_t above = sketch->entries++ - at;
    memmove(sketch->values + at + 1, sketch->values + at, above * sizeof *sketch->values);
    memmove(sketch->counts + at + 1, sketch->counts + at, above * sizeof *sketch->counts);
    sketch->values[at] = value;
    sketch->counts[at] = 0;
    return true;
}

/* Whole numbers often lie side by side, as bins do. Returns the number of values if this does not find it. */
static uint32_t guess_value(const struct wr_sketch *sketch, double value)
{
    double at = sketch->entries ? sketch->last + (value - sketch->values[sketch->last]) : -1;
    return at >= 0 && at < sketch->entries && sketch->values[(uint32_t)at] == value ? (uint32_t)at
                                                                                    : sketch->entries;
}

/* Returns the place of the value, or of its bin if there are too many values now; -1: out of memory. */
static int64_t find_value(struct wr_sketch *sketch, double value)
{
    uint32_t at = guess_value(sketch, value);
    if (at < sketch->entries)
        return at;
    at = search_values(sketch, value);
    if (at == sketch->entries || sketch->values[at] > value) {
        if (sketch->entries == WR_SKETCH_VALUES)
            return turn_into_bins(sketch) ? find_bin(sketch, value) : -1;
        if (!insert_value(sketch, at, value))
            return -1;
    }
    sketch->last = at;
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
    value += 0.0; /* -0 becomes 0 */
    int64_t at = sketch->is_binned ? find_bin(sketch, value) : find_value(sketch, value);
    if (WR_UNLIKELY(at < 0))
        return WR_SKETCH_NO_MEMORY;
    sketch->counts[at] += count;
    note_extremes(sketch, value, value);
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

static void free_entries(const struct wr_sketch *sketch)
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
    free_entries(sketch);
    *sketch = (struct wr_sketch){.slab = sketch->slab};
}

void wr_sketch_clear(struct wr_sketch *sketch)
{
    sketch->count = 0;
    sketch->sum = sketch->compensation = 0;
    sketch->is_binned = sketch->collapsed = false;
    sketch->entries = sketch->last = 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

int32_t wr_sketch_key_at(const struct wr_sketch *sketch, uint32_t entry)
{
    return sketch->is_binned ? sketch->keys[entry] : wr_sketch_key(sketch->values[entry]);
}

double wr_sketch_value_at(const struct wr_sketch *sketch, uint32_t entry)
{
    if (!sketch->is_binned)
        return sketch->values[entry];
    double value = wr_sketch_value(sketch->keys[entry]);
    return value < sketch->min ? sketch->min : value > sketch->max ? sketch->max : value;
}

double wr_sketch_at_rank(const struct wr_sketch *sketch, uint64_t rank)
{
    uint64_t up_to = 0;
    uint32_t entry = 0;
    if (rank <= 1)
        return sketch->min;
    if (rank >= sketch->count)
        return sketch->max;
    while (entry + 1 < sketch->entries && (up_to += sketch->counts[entry]) < rank)
        entry++;
    return wr_sketch_value_at(sketch, entry);
}

double wr_sketch_quantile(const struct wr_sketch *sketch, double q)
{
    /* A share of exactly n values leads to the rank n. The product may be computed as slightly more than n,
     * which is why it is made smaller. */
    double share = q * (double)sketch->count * (1 - 4 * DBL_EPSILON);
    return wr_sketch_at_rank(sketch, share < (double)sketch->count ? (uint64_t)share + 1 : sketch->count);
}

/* ---- Merging --------------------------------------------------------------------------------- */

/* Returns how many distinct values both have together. */
static uint32_t count_distinct(const struct wr_sketch *a, const struct wr_sketch *b)
{
    uint32_t i = 0, j = 0, distinct = 0;
    for (; i < a->entries && j < b->entries; distinct++) {
        double x = a->values[i], y = b->values[j];
        i += x <= y;
        j += y <= x;
    }
    return distinct + (a->entries - i) + (b->entries - j);
}

/* Merges values, from the highest to the lowest: in place, as nothing is overwritten before it was read. What
 * is left of `into` in the end is where it belongs. */
static bool merge_values(struct wr_sketch *into, const struct wr_sketch *from, uint32_t distinct)
{
    if (!reserve_values(into, distinct))
        return false;
    uint32_t i = into->entries, j = from->entries;
    into->entries = distinct;
    while (j) {
        double own = i ? into->values[i - 1] : -INFINITY, other = from->values[j - 1];
        uint64_t count = 0;
        if (own >= other)
            count += into->counts[--i];
        if (other >= own)
            count += from->counts[--j];
        into->values[--distinct] = own > other ? own : other;
        into->counts[distinct] = count;
    }
    return true;
}

/* Puts a bin below those that there are, or what it counts into the lowest one if there are too many. */
static void put_below(struct wr_sketch *merged, int32_t key, uint64_t count)
{
    uint32_t bins = merged->entries;
    bool is_equal = bins && merged->keys[bins - 1] == key;
    if (is_equal || bins == WR_SKETCH_BINS) {
        merged->counts[bins - 1] += count;
        merged->collapsed |= !is_equal;
        return;
    }
    merged->keys[bins] = key;
    merged->counts[bins] = count;
    merged->entries++;
}

static void reverse(struct wr_sketch *sketch)
{
    for (uint32_t i = 0, j = sketch->entries; i + 1 < j; i++) {
        int32_t key = sketch->keys[--j];
        uint64_t count = sketch->counts[j];
        sketch->keys[j] = sketch->keys[i];
        sketch->counts[j] = sketch->counts[i];
        sketch->keys[i] = key;
        sketch->counts[i] = count;
    }
}

/* Merges what both have into bins. */
static bool merge_bins(struct wr_sketch *into, const struct wr_sketch *from)
{
    struct wr_sketch merged = {.slab = into->slab, .collapsed = into->collapsed || from->collapsed};
    uint32_t i = into->entries, j = from->entries;
    if (!reserve_bins(&merged, i + j < WR_SKETCH_BINS ? i + j : WR_SKETCH_BINS)) {
        wr_sketch_fini(&merged);
        return false;
    }
    while (i || j) {
        int32_t own = i ? wr_sketch_key_at(into, i - 1) : INT32_MIN,
                other = j ? wr_sketch_key_at(from, j - 1) : INT32_MIN;
        put_below(&merged, own > other ? own : other, own > other ? into->counts[--i] : from->counts[--j]);
    }
    reverse(&merged);
    free_entries(into);
    into->keys = merged.keys;
    into->counts = merged.counts;
    into->keys_room = merged.keys_room;
    into->counts_room = merged.counts_room;
    into->entries = merged.entries;
    into->is_binned = true;
    into->collapsed = merged.collapsed;
    return true;
}

bool wr_sketch_merge(struct wr_sketch *into, const struct wr_sketch *from)
{
    if (!from->count)
        return true;
    bool is_binned = into->is_binned || from->is_binned;
    uint32_t distinct = is_binned ? UINT32_MAX : count_distinct(into, from);
    if (!(distinct <= WR_SKETCH_VALUES ? merge_values(into, from, distinct) : merge_bins(into, from)))
        return false;
    double sum = from->sum, compensation = from->compensation;
    note_extremes(into, from->min, from->max);
    wr_neumaier_add(&into->sum, &into->compensation, sum);
    into->compensation += compensation;
    into->count += from->count;
    into->last = 0;
    return true;
}
