/* bucket_series: what texts mean, and which are refused. */
#include <criterion/criterion.h>

#include "config/bucket_series.h"
#include "text/common.h"
#include "text/number.h"

/* The bounds as a person writes them: each is the double nearest to that. */
static void check(const char *text, const char *const *expected, size_t count)
{
    double bounds[WR_FAMILY_BUCKETS_MAX];
    const char *problem;
    size_t got = wr_bucket_series_read(text, bounds, &problem);
    cr_assert_eq(got, count, "%s: %zu bounds, %s", text, got, problem ? problem : "no problem");
    cr_assert_null(problem);
    for (size_t i = 0; i < count; i++) {
        char shown[WR_NUMBER_ROOM + 1] = "";
        shown[wr_number_put_double(shown, bounds[i])] = '\0';
        cr_assert_str_eq(shown, expected[i], "%s: bound %zu", text, i);
    }
}

#define CHECK(text, ...)                                                                                       \
    do {                                                                                                       \
        static const char *const expected[] = {__VA_ARGS__};                                                   \
        check(text, expected, WR_COUNT_OF(expected));                                                          \
    } while (0)

static void check_refused(const char *text, const char *because)
{
    double bounds[WR_FAMILY_BUCKETS_MAX];
    const char *problem = NULL;
    cr_assert_eq(wr_bucket_series_read(text, bounds, &problem), 0, "%s", text);
    cr_assert_str_eq(problem, because, "%s", text);
}

Test(bucket_series, bounds_grow_by_a_factor)
{
    CHECK("exponential(0.0001, 2, 8)", "0.0001", "0.0002", "0.0004", "0.0008", "0.0016", "0.0032", "0.0064",
          "0.0128");
    CHECK("exponential(0.001, 10, 5)", "0.001", "0.01", "0.1", "1", "10");
    CHECK("exponential(0.3, 1.5, 4)", "0.3", "0.45", "0.675", "1.0125");
    CHECK("exponential(1e-9, 1000, 4)", "1e-09", "1e-06", "0.001", "1");
    CHECK("exponential(7, 3, 1)", "7");
}

Test(bucket_series, bounds_grow_by_a_width)
{
    CHECK("linear(0, 0.1, 8)", "0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7");
    CHECK("linear(-1.5, 0.75, 4)", "-1.5", "-0.75", "0", "0.75");
    CHECK("linear(1e6, 1, 3)", "1000000", "1000001", "1000002");
    CHECK("linear(1e300, 1e299, 2)", "1e+300", "1.1e+300");
}

Test(bucket_series, as_many_as_a_histogram_may_have)
{
    double bounds[WR_FAMILY_BUCKETS_MAX];
    const char *problem;
    cr_assert_eq(wr_bucket_series_read("linear(1, 1, 200)", bounds, &problem), WR_FAMILY_BUCKETS_MAX);
    cr_assert_eq(bounds[WR_FAMILY_BUCKETS_MAX - 1], WR_FAMILY_BUCKETS_MAX);
}

Test(bucket_series, blanks_are_allowed_between_all_parts)
{
    CHECK(" linear ( 1 ,\t2 , 2 ) ", "1", "3");
    CHECK("linear(1,2,2)", "1", "3");
}

Test(bucket_series, other_texts_are_refused)
{
    static const char other[] = "allowed are an array of bounds, \"exponential(START, FACTOR, COUNT)\" and "
                                "\"linear(START, WIDTH, COUNT)\"";
    static const char *const texts[] = {
        "",
        "exponential",
        "exponential(",
        "exponential(1, 2, 3",
        "exponential(1, 2)",
        "exponential(1, 2, 3, 4)",
        "exponential(1, 2, 3) x",
        "exponential(1, , 3)",
        "exponential(1, 2, three)",
        "exponential(1;2;3)",
        "exponential 1, 2, 3",
        "exponential(nan, 2, 3)",
        "exponential(1, inf, 3)",
        "exponentials(1, 2, 3)",
        "Linear(1, 2, 3)",
        "linear(1.0000000000000000000000000000000000000000000000000000000000000000, 2, 3)",
        "quadratic(1, 2, 3)",
    };
    for (size_t i = 0; i < WR_COUNT_OF(texts); i++)
        check_refused(texts[i], other);
}

Test(bucket_series, numbers_that_do_not_rise_are_refused_by_name)
{
    static const char count[] = "COUNT must be an integer from 1 to 200",
                      rising[] = "the bounds must be finite and rising";
    check_refused("exponential(0, 2, 3)", "START must be above 0");
    check_refused("exponential(-1, 2, 3)", "START must be above 0");
    check_refused("exponential(1, 1, 3)", "FACTOR must be above 1");
    check_refused("linear(1, 0, 3)", "WIDTH must be above 0");
    check_refused("linear(1, -2, 3)", "WIDTH must be above 0");
    check_refused("linear(1, 2, 0)", count);
    check_refused("linear(1, 2, 201)", count);
    check_refused("linear(1, 2, 2.5)", count);
    check_refused("linear(1, 2, -1)", count);
    check_refused("exponential(1, 10, 1e300)", count);
    check_refused("exponential(1, 1e100, 5)", rising);
    check_refused("linear(1e300, 1, 2)", rising);
}
