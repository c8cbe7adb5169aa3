#include <criterion/criterion.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "text/common.h"
#include "text/units.h"

static int64_t duration(const char *text)
{
    int64_t ns = -1;
    cr_assert(wr_units_read_duration(text, &ns), "\"%s\" was refused", text);
    return ns;
}

static int64_t size(const char *text)
{
    int64_t bytes = -1;
    cr_assert(wr_units_read_size(text, &bytes), "\"%s\" was refused", text);
    return bytes;
}

static const char *show_duration(int64_t ns)
{
    static char out[WR_UNITS_ROOM];
    return wr_units_put_duration(out, ns);
}

static const char *show_size(int64_t bytes)
{
    static char out[WR_UNITS_ROOM];
    return wr_units_put_size(out, bytes);
}

Test(units, durations_are_read_in_every_unit)
{
    cr_assert_eq(duration("7ns"), 7);
    cr_assert_eq(duration("7us"), 7000);
    cr_assert_eq(duration("200ms"), 200 * INT64_C(1000000));
    cr_assert_eq(duration("5s"), 5 * INT64_C(1000000000));
    cr_assert_eq(duration("2m"), 120 * INT64_C(1000000000));
    cr_assert_eq(duration("3h"), 10800 * INT64_C(1000000000));
    cr_assert_eq(duration("1d"), 86400 * INT64_C(1000000000));
    cr_assert_eq(duration("0s"), 0);
}

Test(units, sizes_are_read_in_every_unit)
{
    cr_assert_eq(size("7B"), 7);
    cr_assert_eq(size("64KiB"), 65536);
    cr_assert_eq(size("1MiB"), 1048576);
    cr_assert_eq(size("3GiB"), INT64_C(3221225472));
    cr_assert_eq(size("2TiB"), INT64_C(2199023255552));
    cr_assert_eq(size("10kB"), 10000);
    cr_assert_eq(size("10MB"), 10000000);
    cr_assert_eq(size("1GB"), 1000000000);
    cr_assert_eq(size("1TB"), INT64_C(1000000000000));
    cr_assert_eq(size("0B"), 0);
}

Test(units, fractions_are_allowed)
{
    cr_assert_eq(duration("1.5h"), 5400 * INT64_C(1000000000));
    cr_assert_eq(duration("0.5s"), 500000000);
    cr_assert_eq(duration("0.001ms"), 1000);
    cr_assert_eq(size("2.5KiB"), 2560);
    cr_assert_eq(size("0.25MB"), 250000);
}

Test(units, spaces_between_number_and_unit_are_allowed)
{
    cr_assert_eq(duration("5 s"), 5 * INT64_C(1000000000));
    cr_assert_eq(size("1  MiB"), 1048576);
}

Test(units, a_number_without_its_unit_is_refused)
{
    static const char *const texts[] = {"5", "0", "1.5", "100000", "5 "};
    int64_t value = 42;
    for (size_t i = 0; i < WR_COUNT_OF(texts); i++) {
        cr_assert(!wr_units_read_duration(texts[i], &value), "\"%s\"", texts[i]);
        cr_assert(!wr_units_read_size(texts[i], &value), "\"%s\"", texts[i]);
    }
    cr_assert_eq(value, 42, "a refused value must not change the option");
}

Test(units, text_that_is_not_a_duration_is_refused)
{
    static const char *const texts[] = {
        "",     "s",      "ms",   "-5s",  "+5s", "5x", "5S",   "5sec", "5 seconds", "5s ", " 5s",
        "5s5s", "1e3s",   "0x5s", "5..s", ".s",  ".",  "5\ts", "1,5s", "1m30s",     "5µs", "5\ns",
        "nans", "1.2.3s", "infs", "5MiB", "5B",  "5K", "5kB",  "--5s", "5-s",       "s5",
    };
    int64_t value;
    for (size_t i = 0; i < WR_COUNT_OF(texts); i++)
        cr_assert(!wr_units_read_duration(texts[i], &value), "\"%s\"", texts[i]);
}

Test(units, text_that_is_not_a_size_is_refused)
{
    static const char *const texts[] = {
        "",    "B",    "MiB",  "-1B",    "+1B", "1K",   "1M",   "1KB",
        "1kb", "1kib", "1Mib", "1 MiB ", "5s",  "1PiB", "1e3B", "1b",
    };
    int64_t value;
    for (size_t i = 0; i < WR_COUNT_OF(texts); i++)
        cr_assert(!wr_units_read_size(texts[i], &value), "\"%s\"", texts[i]);
}

Test(units, values_out_of_range_are_refused)
{
    int64_t value;
    cr_assert_eq(duration("104166d"), 104166 * INT64_C(86400) * 1000000000);
    cr_assert(!wr_units_read_duration("106752d", &value));
    cr_assert(!wr_units_read_duration("9223372037s", &value));
    cr_assert(!wr_units_read_duration("9999999999999999999999999999ns", &value));
    cr_assert(!wr_units_read_duration("99999999999999999999999999999999999999999999ns", &value));
    cr_assert_eq(size("8000000TiB"), INT64_C(8000000) << 40);
    cr_assert(!wr_units_read_size("8388608TiB", &value));
    cr_assert(!wr_units_read_size("9223372036854775808B", &value));
}

Test(units, whole_numbers_stay_exact_as_far_as_doubles_are)
{
    cr_assert_eq(size("4503599627370497B"), INT64_C(4503599627370497));
    cr_assert_eq(size("9007199254740991B"), INT64_C(9007199254740991));
    cr_assert_eq(duration("9007199254740991ns"), INT64_C(9007199254740991));
}

Test(units, durations_are_written_in_the_largest_unit_that_divides_them)
{
    cr_assert_str_eq(show_duration(0), "0s");
    cr_assert_str_eq(show_duration(1), "1ns");
    cr_assert_str_eq(show_duration(999), "999ns");
    cr_assert_str_eq(show_duration(1000), "1us");
    cr_assert_str_eq(show_duration(500 * WR_NS_PER_MS), "500ms");
    cr_assert_str_eq(show_duration(1500 * WR_NS_PER_MS), "1500ms");
    cr_assert_str_eq(show_duration(30 * WR_NS_PER_S), "30s");
    cr_assert_str_eq(show_duration(60 * WR_NS_PER_S), "1m");
    cr_assert_str_eq(show_duration(90 * WR_NS_PER_S), "90s");
    cr_assert_str_eq(show_duration(3600 * WR_NS_PER_S), "1h");
    cr_assert_str_eq(show_duration(36 * 3600 * WR_NS_PER_S), "36h");
    cr_assert_str_eq(show_duration(86400 * WR_NS_PER_S), "1d");
    cr_assert_str_eq(show_duration(INT64_MAX), "9223372036854775807ns");
}

Test(units, sizes_are_written_in_the_largest_binary_unit_that_divides_them)
{
    cr_assert_str_eq(show_size(0), "0B");
    cr_assert_str_eq(show_size(1023), "1023B");
    cr_assert_str_eq(show_size(1024), "1KiB");
    cr_assert_str_eq(show_size(1536), "1536B");
    cr_assert_str_eq(show_size(10000000), "10000000B");
    cr_assert_str_eq(show_size(1 << 20), "1MiB");
    cr_assert_str_eq(show_size(INT64_C(3) << 30), "3GiB");
    cr_assert_str_eq(show_size(INT64_C(5000) << 40), "5000TiB");
}

Test(units, written_values_read_back_unchanged)
{
    static const int64_t values[] = {0, 1, 17, 1000, 86399, 86400 * WR_NS_PER_S, 1536, INT64_C(5) << 40};
    for (size_t i = 0; i < WR_COUNT_OF(values); i++) {
        cr_assert_eq(duration(show_duration(values[i])), values[i]);
        cr_assert_eq(size(show_size(values[i])), values[i]);
    }
}

Test(units, every_listed_unit_is_read)
{
    char text[WR_UNITS_ROOM];
    size_t durations = 0, sizes = 0;
    for (const char *name; (name = wr_units_duration_name(durations)); durations++) {
        snprintf(text, sizeof text, "1%s", name);
        cr_assert_gt(duration(text), 0);
    }
    for (const char *name; (name = wr_units_size_name(sizes)); sizes++) {
        snprintf(text, sizeof text, "1%s", name);
        cr_assert_gt(size(text), 0);
    }
    cr_assert_eq(durations, 7);
    cr_assert_eq(sizes, 9);
}

static void expect_suggestion(const char *text, bool is_size, const char *expected)
{
    char out[WR_UNITS_NEAREST_ROOM];
    cr_assert_str_eq(wr_units_suggest(text, is_size, out), expected, "%s: %s", text, out);
}

Test(units, a_unit_that_is_nearly_right_is_suggested)
{
    expect_suggestion("10M", true, "; did you mean 10MiB or 10MB?");
    expect_suggestion("1.5 k", true, "; did you mean 1.5KiB or 1.5kB?");
    expect_suggestion("10gi", true, "; did you mean 10GiB?");
    expect_suggestion("10KB", true, "; did you mean 10kB?");
    expect_suggestion("10tib", true, "; did you mean 10TiB?");
    expect_suggestion("10b", true, "; did you mean 10B?");
    expect_suggestion("10 bytes", true, "; did you mean 10B?");
    expect_suggestion("10sec", false, "; did you mean 10s?");
    expect_suggestion("2 Minutes", false, "; did you mean 2m?");
    expect_suggestion("100MS", false, "; did you mean 100ms?");
    expect_suggestion("3days", false, "; did you mean 3d?");
}

Test(units, nothing_is_suggested_for_other_texts)
{
    expect_suggestion("", true, "");
    expect_suggestion("x", true, "");
    expect_suggestion("10", true, "");
    expect_suggestion("10MM", true, "");
    expect_suggestion("10x", true, "");
    expect_suggestion("10", false, "");
    expect_suggestion("10x", false, "");
    expect_suggestion("soon", false, "");
}
