#include "summary/exponential.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "summary/sketch.h"
#include "summary/sketch_internal.h"

/* Returns the index of a magnitude's bucket at the finest scale: the largest whose lower bound is below it.
 * Each step halves the buckets, without a logarithm, so that powers of two are exactly the bounds that they
 * are. */
static int32_t index_of(double magnitude)
{
    static const double roots[WR_EXPONENTIAL_SCALE] = {
        1.4142135623730951, /* 2^(1/2), 2^(1/4), ... */
        1.189207115002721,  1.0905077326652577, 1.0442737824274138, 1.0218971486541166, 1.0108892860517005,
    };
    int exponent;
    double rest = 2 * frexp(magnitude, &exponent);
    int32_t index = exponent - 1;
    if (rest <= 1) { /* a power of two belongs to the bucket below */
        rest *= 2;
        index--;
    }
    for (int i = 0; i < WR_EXPONENTIAL_SCALE; i++) {
        bool is_above = rest > roots[i];
        rest = is_above ? rest / roots[i] : rest;
        index = 2 * index + is_above;
    }
    return index;
}

static double magnitude_of(const struct wr_sketch *sketch, uint32_t entry)
{
    double value = wr_sketch_value_at(sketch, entry);
    return value < 0 ? -value : value > 0 ? value : DBL_TRUE_MIN;
}

/* The index at a coarser scale, rounded down. */
static int32_t coarsen(int32_t index, int shift)
{
    int32_t width = (int32_t)1 << shift;
    return index / width - (index % width < 0);
}

/* The values or bins of one sign, [first, end) in ascending order, and their lowest and highest index at the
 * finest scale. */
struct side {
    uint32_t first, end;
    int32_t low, high;
};

static struct side make_side(const struct wr_sketch *sketch, uint32_t first, uint32_t end)
{
    struct side side = {first, end, 0, -1};
    if (first == end)
        return side;
    int32_t a = index_of(magnitude_of(sketch, first)), b = index_of(magnitude_of(sketch, end - 1));
    side.low = a < b ? a : b;
    side.high = a < b ? b : a;
    return side;
}

static uint32_t count_buckets(const struct side *side, int shift)
{
    if (side->first == side->end)
        return 0;
    return (uint32_t)(coarsen(side->high, shift) - coarsen(side->low, shift)) + 1;
}

static void fill(struct wr_exponential_buckets *buckets, const struct wr_sketch *sketch,
                 const struct side *side, int shift)
{
    buckets->offset = coarsen(side->low, shift);
    buckets->count = count_buckets(side, shift);
    memset(buckets->counts, 0, buckets->count * sizeof *buckets->counts);
    for (uint32_t entry = side->first; entry < side->end; entry++) {
        int32_t index = coarsen(index_of(magnitude_of(sketch, entry)), shift);
        buckets->counts[index - buckets->offset] += sketch->counts[entry];
    }
}

void wr_exponential_make(struct wr_exponential *histogram, const struct wr_sketch *sketch, uint32_t most)
{
    uint32_t zero = 0;
    while (zero < sketch->entries && wr_sketch_key_at(sketch, zero) < 0)
        zero++;
    bool has_zeros = zero < sketch->entries && wr_sketch_key_at(sketch, zero) == 0;
    const struct side negative = make_side(sketch, 0, zero),
                      positive = make_side(sketch, zero + has_zeros, sketch->entries);
    int shift = 0;
    while (count_buckets(&negative, shift) > most || count_buckets(&positive, shift) > most)
        shift++;
    histogram->scale = WR_EXPONENTIAL_SCALE - shift;
    histogram->zero_count = has_zeros ? sketch->counts[zero] : 0;
    fill(&histogram->negative, sketch, &negative, shift);
    fill(&histogram->positive, sketch, &positive, shift);
}
