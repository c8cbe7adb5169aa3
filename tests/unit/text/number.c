#include <criterion/criterion.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/number.h"

static const char *show(double value)
{
    static char text[WR_NUMBER_ROOM + 1];
    text[wr_number_put_double(text, value)] = '\0';
    return text;
}

static const char *show_repr(double value)
{
    static char text[WR_NUMBER_ROOM + 1];
    text[wr_number_put_repr(text, value)] = '\0';
    return text;
}

Test(number, integral_values_have_no_point)
{
    cr_assert_str_eq(show(0), "0");
    cr_assert_str_eq(show(-0.0), "-0");
    cr_assert_str_eq(show(100), "100");
    cr_assert_str_eq(show(-7), "-7");
    cr_assert_str_eq(show(1e15), "1000000000000000");
}

Test(number, decimals_are_the_shortest_that_read_back)
{
    cr_assert_str_eq(show(49.403), "49.403");
    cr_assert_str_eq(show(12.375), "12.375");
    cr_assert_str_eq(show(0.1), "0.1");
    cr_assert_str_eq(show(0.1 + 0.2), "0.30000000000000004");
    cr_assert_str_eq(show(1.0 / 3), "0.3333333333333333");
    cr_assert_str_eq(show(0.001), "0.001");
    cr_assert_str_eq(show(1234.5), "1234.5");
    cr_assert_str_eq(show(9007199254740993.0), "9007199254740992");
}

Test(number, very_large_and_very_small_values_have_an_exponent)
{
    cr_assert_str_eq(show(1e16), "1e+16");
    cr_assert_str_eq(show(123456789012345680.0), "1.2345678901234568e+17");
    cr_assert_str_eq(show(0.0001), "0.0001");
    cr_assert_str_eq(show(0.00001), "1e-05");
    cr_assert_str_eq(show(DBL_MAX), "1.7976931348623157e+308");
    cr_assert_str_eq(show(DBL_MIN), "2.2250738585072014e-308");
    cr_assert_str_eq(show(5e-324), "5e-324");
}

Test(number, infinities_and_nan_have_names)
{
    cr_assert_str_eq(show(NAN), "NaN");
    cr_assert_str_eq(show(INFINITY), "Infinity");
    cr_assert_str_eq(show(-INFINITY), "-Infinity");
}

Test(number, repr_matches_pythons)
{
    cr_assert_str_eq(show_repr(100), "100.0");
    cr_assert_str_eq(show_repr(-0.0), "-0.0");
    cr_assert_str_eq(show_repr(1e15), "1000000000000000.0");
    cr_assert_str_eq(show_repr(1e16), "1e+16");
    cr_assert_str_eq(show_repr(49.403), "49.403");
    cr_assert_str_eq(show_repr(1e-5), "1e-05");
}

Test(number, both_ends_of_the_integer_range_are_written)
{
    char text[WR_NUMBER_ROOM + 1];
    text[wr_number_put_int(text, INT64_MIN)] = '\0';
    cr_assert_str_eq(text, "-9223372036854775808");
    text[wr_number_put_int(text, INT64_MAX)] = '\0';
    cr_assert_str_eq(text, "9223372036854775807");
    text[wr_number_put_uint(text, UINT64_MAX)] = '\0';
    cr_assert_str_eq(text, "18446744073709551615");
    text[wr_number_put_uint(text, 0)] = '\0';
    cr_assert_str_eq(text, "0");
}

Test(number, every_number_of_digits_is_written)
{
    char text[WR_NUMBER_ROOM + 1], expected[WR_NUMBER_ROOM + 1];
    for (uint64_t power = 1, digits = 1; digits <= 20; power *= 10, digits++) {
        for (int step = -1; step <= 1; step++) {
            text[wr_number_put_uint(text, power + (uint64_t)step)] = '\0';
            snprintf(expected, sizeof expected, "%llu", (unsigned long long)(power + (uint64_t)step));
            cr_assert_str_eq(text, expected);
        }
    }
}

Test(number, a_double_is_read_in_decimal_notation_only)
{
    double value;
    cr_assert(wr_number_read_double("0.5", &value) && value == 0.5);
    cr_assert(wr_number_read_double("-1e3", &value) && value == -1000);
    cr_assert(!wr_number_read_double("", &value));
    cr_assert(!wr_number_read_double("0x10", &value));
    cr_assert(!wr_number_read_double("inf", &value));
    cr_assert(!wr_number_read_double("nan", &value));
    cr_assert(!wr_number_read_double(" 1", &value));
    cr_assert(!wr_number_read_double("1,5", &value));
    cr_assert(!wr_number_read_double("1e", &value));
    cr_assert(!wr_number_read_double("1e999", &value));
}

Test(number, reading_an_integer_refuses_values_out_of_range)
{
    int64_t value;
    cr_assert(wr_number_read_int("-9223372036854775808", &value) && value == INT64_MIN);
    cr_assert(!wr_number_read_int("9223372036854775808", &value));
    cr_assert(!wr_number_read_int("1.0", &value));
    cr_assert(!wr_number_read_int("-", &value));
    cr_assert(!wr_number_read_int("", &value));
}

Test(number, integers_that_a_double_holds_exactly_are_recognized)
{
    static const int64_t held[] = {0, 1, -1, 9007199254740992, -9007199254740992, 9007199254740994, INT64_MIN},
                         lost[] = {9007199254740993, -9007199254740993, INT64_MAX, INT64_MAX - 1,
                                   INT64_MIN + 1};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        cr_assert(wr_number_is_double(held[i]), "%lld", (long long)held[i]);
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
        cr_assert(!wr_number_is_double(lost[i]), "%lld", (long long)lost[i]);
}
