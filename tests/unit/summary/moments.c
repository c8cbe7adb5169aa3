#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#include "summary/moments.h"
#include "summary/sketch.h"

static struct wr_sketch sketch;

static void free_sketch(void)
{
    wr_sketch_fini(&sketch);
}

TestSuite(moments, .fini = free_sketch);

static void add(double value, uint64_t count)
{
    cr_assert_eq(wr_sketch_add_many(&sketch, value, count), WR_SKETCH_OK);
}

static void expect(uint64_t rank, double sum, double squares)
{
    struct wr_moments moments = wr_moments_of(&sketch, rank);
    cr_assert_eq(moments.sum, sum, "%g", moments.sum);
    cr_assert_eq(moments.squares, squares, "%g", moments.squares);
}

Test(moments, sums_are_those_of_the_smallest_values)
{
    add(3, 2);
    add(-1, 1);
    add(0.5, 4);
    expect(0, 0, 0);
    expect(1, -1, 1);
    expect(3, 0, 1.5);
    expect(6, 4, 11);
    expect(7, 7, 20);
}

Test(moments, the_deviation_is_that_of_all_values)
{
    for (int i = 1; i <= 4; i++)
        add(i, 1);
    cr_assert_eq(wr_moments_deviation(&sketch), sqrt(1.25));
}

Test(moments, the_deviation_is_rounded_as_that_of_a_list)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < 150; i++)
        add(i * 7 % 23, 1);
    for (int i = 0; i < 150; i++)
        sum += i * 7 % 23;
    for (int value = 0; value < 23; value++)
        for (int i = 0; i < 150; i++)
            if (i * 7 % 23 == value)
                squares += (value - sum / 150) * (value - sum / 150);
    cr_assert_eq(wr_moments_deviation(&sketch), sqrt(squares / 150));
}

Test(moments, equal_values_do_not_deviate)
{
    add(0.1, 1);
    cr_assert_eq(wr_moments_deviation(&sketch), 0);
    add(0.1, 6);
    cr_assert_lt(wr_moments_deviation(&sketch), 1e-16);
}

/* Squares of any size, even and odd powers of two among them. */
Test(moments, the_deviation_is_exact_but_for_the_last_bit)
{
    for (double apart = 0x1p-500; apart < 0x1p500; apart *= 1.7) {
        add(-apart, 1);
        add(0, 1);
        add(apart, 1);
        double expected = sqrt((apart * apart + apart * apart) / 3);
        cr_assert_leq(fabs(wr_moments_deviation(&sketch) - expected), expected * DBL_EPSILON, "%g", apart);
        wr_sketch_clear(&sketch);
    }
}

Test(moments, what_a_double_cannot_hold_is_infinite)
{
    add(-DBL_MAX, 1);
    add(DBL_MAX, 3);
    cr_assert(isinf(wr_moments_of(&sketch, 4).squares));
    cr_assert_not(isfinite(wr_moments_deviation(&sketch)));
}

Test(moments, of_many_values_they_are_within_1_percent)
{
    double sum = 0, squares = 0, root_mean_square;
    for (int i = 1; i <= 10000; i++) {
        add(i, 1);
        sum += i <= 9000 ? i : 0;
        squares += i <= 9000 ? (double)i * i : 0;
    }
    struct wr_moments moments = wr_moments_of(&sketch, 9000);
    cr_assert_lt(fabs(moments.sum - sum), 0.01 * sum);
    cr_assert_lt(fabs(moments.squares - squares), 0.0201 * squares);
    root_mean_square = sqrt(10001.0 * 20001 / 6);
    cr_assert_lt(fabs(wr_moments_deviation(&sketch) - sqrt((1e8 - 1) / 12)), 0.01 * root_mean_square);
}
