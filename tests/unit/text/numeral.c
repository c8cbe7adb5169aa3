/* numeral: numbers and times in part of a line. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/number.h"
#include "text/numeral.h"

static bool read_all(const char *text, unsigned flags, weir_number *value)
{
    return wr_numeral_read(text, text + strlen(text), flags, value);
}

Test(numeral, every_double_that_weir_writes_is_read_back)
{
    static const double values[] = {0.0,
                                    -0.0,
                                    1e308,
                                    5e-324,
                                    0.1,
                                    49.403,
                                    1e16,
                                    1e-5,
                                    9007199254740993.0,
                                    123456.789,
                                    1e22,
                                    1e23,
                                    -1.5e-7,
                                    2.2250738585072014e-308,
                                    1e15,
                                    0.3,
                                    1e-300,
                                    100};
    char text[WR_NUMBER_ROOM + 1];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        weir_number value;
        text[wr_number_put_repr(text, values[i])] = '\0';
        cr_assert(read_all(text, 0, &value) && value.kind == WEIR_KIND_DOUBLE, "%s", text);
        cr_assert_eq(memcmp(&value.is.f64, &values[i], sizeof values[i]), 0, "%s: %.17g", text, value.is.f64);
    }
}

Test(numeral, short_decimals_are_the_nearest_doubles)
{
    char text[64];
    srand(1);
    for (int i = 0; i < 300000; i++) {
        weir_number value;
        snprintf(text, sizeof text, "%s%d.%0*d", i % 3 ? "" : "-", rand() % (i % 2 ? 1000000 : 10), 1 + i % 9,
                 rand() % 10);
        cr_assert(read_all(text, 0, &value) && value.is.f64 == strtod(text, NULL), "%s: %.17g", text,
                  value.is.f64);
    }
}

Test(numeral, integers_that_fit_are_integers)
{
    static const char *const texts[] = {
        "0", "5", "-5", "9007199254740993", "9223372036854775807", "-9223372036854775808"};
    weir_number value;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cr_assert(read_all(texts[i], 0, &value) && value.kind == WEIR_KIND_INT &&
                      value.is.i64 == strtoll(texts[i], NULL, 10),
                  "%s", texts[i]);
    cr_assert(read_all("-0", 0, &value) && value.kind == WEIR_KIND_DOUBLE && signbit(value.is.f64));
    cr_assert(read_all("9223372036854775808", 0, &value) && value.kind == WEIR_KIND_DOUBLE &&
              value.is.f64 == 0x1p63);
    cr_assert(read_all("-9223372036854775809", 0, &value) && value.kind == WEIR_KIND_DOUBLE &&
              value.is.f64 == -0x1p63);
}

Test(numeral, what_is_no_number_is_refused)
{
    static const char *const texts[] = {"",     "-",    ".",    "e5",      "1e",  "1e+",   "1.5.",
                                        "0x10", " 1",   "1 ",   "1_0",     "--1", "+",     "+-1",
                                        "nan",  "+nan", "-nan", "infinit", "in",  "1e999", "-1e999"};
    weir_number value;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cr_assert(!read_all(texts[i], 0, &value), "%s", texts[i]);
        bool is_nan = strcmp(texts[i], "nan") == 0;
        cr_assert(read_all(texts[i], WR_NUMERAL_PLUS | WR_NUMERAL_SPECIAL, &value) == is_nan, "%s", texts[i]);
    }
    cr_assert(!read_all("+1", 0, &value) && read_all("+1", WR_NUMERAL_PLUS, &value) && value.is.i64 == 1);
    cr_assert(read_all("+1.5", WR_NUMERAL_PLUS, &value) && value.is.f64 == 1.5);
    cr_assert(read_all("+1.5e300", WR_NUMERAL_PLUS, &value) && value.is.f64 == 1.5e300);
}

Test(numeral, special_values_have_any_case)
{
    weir_number value;
    cr_assert(read_all("NaN", WR_NUMERAL_SPECIAL, &value) && isnan(value.is.f64));
    cr_assert(read_all("-INF", WR_NUMERAL_SPECIAL, &value) && value.is.f64 == -INFINITY);
    cr_assert(read_all("+Inf", WR_NUMERAL_SPECIAL | WR_NUMERAL_PLUS, &value) && value.is.f64 == INFINITY);
    cr_assert(read_all("infinity", WR_NUMERAL_SPECIAL, &value) && value.is.f64 == INFINITY);
}

Test(numeral, only_the_part_is_read)
{
    static const char line[] = "12345,6";
    weir_number value;
    cr_assert(wr_numeral_read(line, line + 5, 0, &value) && value.is.i64 == 12345);
    cr_assert(wr_numeral_read(line, line + 2, 0, &value) && value.is.i64 == 12);
}

Test(numeral, times_are_cut_to_nanoseconds_within_their_range)
{
    static const struct {
        const char *text;
        int64_t time_ns;
    } times[] = {{"0", 0},
                 {"1.5", 1500000000},
                 {"1795219607.5761981239", 1795219607576198123},
                 {"-0.000000001", -1},
                 {"1.", 1000000000},
                 {"9223372036.854775807", INT64_MAX},
                 {"-9223372036.854775808", INT64_MIN}};
    static const char *const wrong[] = {
        "", "-", ".5", "9223372036.854775808", "-9223372036.854775809", "99999999999", "1e9", "1.5s", "+1"};
    int64_t time_ns;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        cr_assert(wr_numeral_read_time(times[i].text, times[i].text + strlen(times[i].text), &time_ns) &&
                      time_ns == times[i].time_ns,
                  "%s", times[i].text);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert(!wr_numeral_read_time(wrong[i], wrong[i] + strlen(wrong[i]), &time_ns), "%s", wrong[i]);
    cr_assert(wr_numeral_read_ticks("-5", "-5" + 2, 1000, &time_ns) && time_ns == -5000);
    cr_assert(!wr_numeral_read_ticks("9223372036854776", strchr("9223372036854776", 0), 1000, &time_ns));
}
