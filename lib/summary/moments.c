#include "summary/moments.h"

#include <math.h>

#include "summary/sketch.h"
#include "summary/sketch_internal.h"

/* Of more values the last bit of the deviation is not worth the time. */
enum { ADDED_SINGLY = 10000 };

struct wr_moments wr_moments_of(const struct wr_sketch *sketch, uint64_t rank)
{
    struct wr_moments moments = {0};
    for (uint32_t i = 0; i < sketch->entries && rank; i++) {
        uint64_t count = sketch->counts[i] < rank ? sketch->counts[i] : rank;
        double value = wr_sketch_value_at(sketch, i);
        moments.sum += value * (double)count;
        moments.squares += value * value * (double)count;
        rank -= count;
    }
    return moments;
}

/* By Newton's method, from above, since the library needs no libm; in the wider type, so that its last bit is
 * rarely another one than that of sqrt. */
static double square_root(double square)
{
    int exponent;
    if (!(square > 0) || !isfinite(square))
        return square;
    frexp(square, &exponent);
    long double root = ldexp(1, exponent / 2 + 1);
    for (long double next; (next = (root + square / root) / 2) < root;)
        root = next;
    return (double)root;
}

double wr_moments_deviation(const struct wr_sketch *sketch)
{
    double mean = wr_moments_of(sketch, sketch->count).sum / (double)sketch->count, squares = 0;
    for (uint32_t i = 0; i < sketch->entries; i++) {
        double apart = wr_sketch_value_at(sketch, i) - mean;
        /* each for itself, as who has a list of them adds it, since every addition rounds */
        uint64_t times = sketch->counts[i];
        for (; times && sketch->count <= ADDED_SINGLY; times--)
            squares += apart * apart;
        squares += apart * apart * (double)times;
    }
    return square_root(squares / (double)sketch->count);
}
