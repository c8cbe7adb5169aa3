#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "summary/exponential.h"
#include "summary/sketch.h"

static struct wr_exponential histogram;

static void make(const double *values, size_t count, uint32_t most)
{
    struct wr_sketch sketch = {0};
    for (size_t i = 0; i < count; i++)
        cr_assert(wr_sketch_add(&sketch, values[i]) == WR_SKETCH_OK);
    wr_exponential_make(&histogram, &sketch, most);
    wr_sketch_fini(&sketch);
}

static uint64_t count_of(const struct wr_exponential_buckets *buckets)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < buckets->count; i++)
        count += buckets->counts[i];
    return count;
}

/* Returns the lower bound of a bucket. */
static double bound_of(int32_t index)
{
    return exp2(ldexp(index, -histogram.scale));
}

static double any_magnitude(void)
{
    return ldexp(1 + (double)random() / RAND_MAX, (int)(random() % 2098) - 1074);
}

Test(exponential, one_value_is_in_its_bucket_whatever_it_is)
{
    for (int i = 0; i < 20000; i++) {
        double value = any_magnitude();
        make((const double[]){i % 2 ? value : -value}, 1, 160);
        const struct wr_exponential_buckets *buckets = i % 2 ? &histogram.positive : &histogram.negative;
        const struct wr_exponential_buckets *others = i % 2 ? &histogram.negative : &histogram.positive;
        cr_assert(histogram.scale == 6 && buckets->count == 1 && buckets->counts[0] == 1);
        cr_assert(others->count == 0 && histogram.zero_count == 0);
        double low = bound_of(buckets->offset), high = bound_of(buckets->offset + 1);
        cr_assert(value >= low * (1 - 1e-12) && value <= high * (1 + 1e-12), "%g: %g to %g", value, low, high);
    }
}

Test(exponential, a_power_of_two_is_the_upper_bound_of_its_bucket)
{
    for (int exponent = -1074; exponent <= 1023; exponent++) {
        make((const double[]){ldexp(1, exponent)}, 1, 160);
        cr_assert_eq(histogram.positive.offset, exponent * 64 - 1, "%d", exponent);
    }
    make((const double[]){DBL_MAX}, 1, 160);
    cr_assert_eq(histogram.positive.offset, 1024 * 64 - 1);
}

Test(exponential, zeros_are_counted_apart_and_nothing_has_no_buckets)
{
    make((const double[]){0, -0.0, 5, 0}, 4, 160);
    cr_assert(histogram.zero_count == 3 && histogram.positive.count == 1 && histogram.negative.count == 0);
    make(NULL, 0, 160);
    cr_assert(histogram.zero_count == 0 && histogram.positive.count == 0 && histogram.negative.count == 0);
}

Test(exponential, all_doubles_fit_into_any_number_of_buckets_and_each_is_counted)
{
    static const uint32_t numbers[] = {WR_EXPONENTIAL_LEAST, 4, 5, 10, 160, 640, WR_EXPONENTIAL_MOST};
    static double values[6000] = {DBL_TRUE_MIN, -DBL_TRUE_MIN, DBL_MAX, -DBL_MAX, 0};
    for (size_t i = 5; i < 6000; i++)
        values[i] = any_magnitude() * (i % 2 ? 1 : -1);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        make(values, 6000, numbers[i]);
        cr_assert(histogram.scale >= -10 && histogram.scale <= 6, "%d", histogram.scale);
        cr_assert(histogram.positive.count <= numbers[i] && histogram.negative.count <= numbers[i]);
        cr_assert(2 * histogram.positive.count > numbers[i] / 2, "no coarser than necessary");
        cr_assert_eq(histogram.zero_count + count_of(&histogram.positive) + count_of(&histogram.negative),
                     6000);
    }
}

/* Returns the middle of the bucket that holds the value of a rank. */
static double find_rank(uint64_t rank)
{
    uint32_t i = 0;
    for (uint64_t below = 0; (below += histogram.positive.counts[i]) <= rank;)
        i++;
    double low = bound_of(histogram.positive.offset + (int32_t)i),
           high = bound_of(histogram.positive.offset + (int32_t)i + 1);
    return 2 * low * high / (low + high);
}

static int compare(const void *a, const void *b)
{
    const double *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

Test(exponential, each_coarser_scale_doubles_what_is_added_to_the_error_of_the_sketch)
{
    static double values[10000];
    for (size_t i = 0; i < 10000; i++)
        values[i] = exp2(10.0 * (double)random() / RAND_MAX); /* ten powers of two */
    qsort(values, 10000, sizeof values[0], compare);
    static const struct {
        uint32_t most;
        int32_t scale;
        double error;
    } cases[] = {{642, 6, 0.016}, {322, 5, 0.021}, {162, 4, 0.032}, {82, 3, 0.054}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make(values, 10000, cases[i].most);
        cr_assert_eq(histogram.scale, cases[i].scale);
        for (uint64_t rank = 0; rank < 10000; rank += 7)
            cr_assert(fabs(find_rank(rank) / values[rank] - 1) <= cases[i].error, "scale %d, rank %zu",
                      histogram.scale, (size_t)rank);
    }
}
