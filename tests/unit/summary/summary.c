/* Summaries as text, and the buckets of histograms. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <weir/types.h>

#include "summary/buckets.h"
#include "summary/summary.h"
#include "text/buffer.h"
#include "text/error.h"

static struct wr_buffer scratch;
static char text[WR_SUMMARY_TEXT];
static struct wr_summary_room room;
static struct wr_error error;

static void setup(void)
{
    cr_assert(wr_buffer_reserve(&scratch, WR_SUMMARY_BYTES));
}

static void teardown(void)
{
    wr_buffer_fini(&scratch);
}

TestSuite(summary, .init = setup, .fini = teardown);

/* Its buckets are static; the caller frees the sketch. */
static struct wr_summary make(uint32_t values)
{
    static const uint64_t buckets[] = {1, 0, 300}, totals[] = {7, 8, UINT64_MAX};
    struct wr_summary summary = {
        .kind = WEIR_HISTOGRAM,
        .start_ns = 1,
        .end_ns = INT64_MAX,
        .since_ns = 5,
        .count = values,
        .sum = 0.1,
        .last = -3,
        .total_count = UINT64_MAX,
        .total_sum = 1e300,
        .bucket_count = 3,
        .buckets = buckets,
        .total_buckets = totals,
    };
    for (uint32_t i = 0; i < values; i++)
        cr_assert_eq(wr_sketch_add(&summary.sketch, i % 2 ? -(double)i : i * 1e10), WR_SKETCH_OK);
    return summary;
}

Test(summary, what_is_written_is_read)
{
    struct wr_summary summary = make(1000), read;
    size_t length = wr_summary_write(&summary, &scratch, text);
    cr_assert_eq(length, strlen(text));
    cr_assert(wr_summary_read(&read, &room, text, &error), "%s", error.text);
    cr_assert(read.kind == summary.kind && read.start_ns == 1 && read.end_ns == INT64_MAX &&
              read.since_ns == 5);
    cr_assert(read.count == 1000 && read.sum == 0.1 && read.last == -3);
    cr_assert(read.total_count == UINT64_MAX && read.total_sum == 1e300 && read.bucket_count == 3);
    cr_assert_arr_eq(read.buckets, summary.buckets, 3 * sizeof *read.buckets);
    cr_assert_arr_eq(read.total_buckets, summary.total_buckets, 3 * sizeof *read.buckets);
    cr_assert(read.sketch.count == 1000 && read.sketch.min == -999 && read.sketch.max == 998e10);
    cr_assert_eq(wr_sketch_quantile(&read.sketch, 0.9), wr_sketch_quantile(&summary.sketch, 0.9));
    wr_sketch_fini(&read.sketch);
    wr_sketch_fini(&summary.sketch);
}

/* The room is for the largest there can be: nothing is allocated while a summary is written. */
Test(summary, the_largest_one_fits)
{
    uint64_t most[WR_BUCKETS_MOST];
    struct wr_summary summary = make(0), read;
    memset(most, 0xff, sizeof most);
    summary.start_ns = summary.since_ns = -1;
    summary.bucket_count = WR_BUCKETS_MOST;
    summary.buckets = summary.total_buckets = most;
    double value = 1e-300;
    while (summary.sketch.entries < WR_SKETCH_BINS && value < 1e300) {
        wr_sketch_add(&summary.sketch, value);
        value *= 1.3;
    }
    const char *before = scratch.data;
    cr_assert_lt(wr_summary_write(&summary, &scratch, text), WR_SUMMARY_TEXT);
    cr_assert_eq(scratch.data, before);
    cr_assert(wr_summary_read(&read, &room, text, &error), "%s", error.text);
    cr_assert_eq(read.sketch.entries, summary.sketch.entries);
    wr_sketch_fini(&read.sketch);
    wr_sketch_fini(&summary.sketch);
}

Test(summary, what_is_cut_off_or_not_base64_is_refused)
{
    struct wr_summary summary = make(20), read;
    size_t length = wr_summary_write(&summary, &scratch, text);
    wr_sketch_fini(&summary.sketch);
    for (size_t cut = 0; cut + 2 < length; cut++) {
        char *shorter = strndup(text, cut);
        cr_assert_not(wr_summary_read(&read, &room, shorter, &error), "cut at %zu of %zu", cut, length);
        free(shorter);
    }
    cr_assert_not(wr_summary_read(&read, &room, "!", &error));
    cr_assert_str_eq(error.text, "summary: it is not base64, or too long");
    char *longest = malloc(2 * WR_SUMMARY_TEXT);
    memset(longest, 'A', 2 * WR_SUMMARY_TEXT - 1);
    longest[2 * WR_SUMMARY_TEXT - 1] = '\0';
    cr_assert_not(wr_summary_read(&read, &room, longest, &error));
    free(longest);
}

Test(summary, damaged_texts_are_refused_or_read_within_bounds)
{
    struct wr_summary summary = make(20), read;
    size_t length = wr_summary_write(&summary, &scratch, text);
    wr_sketch_fini(&summary.sketch);
    for (size_t i = 0; i < length; i++) {
        char before = text[i];
        for (const char *other = "A/9z"; *other; other++) {
            text[i] = *other;
            if (wr_summary_read(&read, &room, text, &error))
                cr_assert(read.bucket_count <= WR_BUCKETS_MOST && read.kind <= WEIR_HISTOGRAM);
            wr_sketch_fini(&read.sketch);
        }
        text[i] = before;
    }
}

Test(summary, buckets_that_are_not_declared_depend_on_the_unit)
{
    static const double own[] = {3, 4};
    size_t count;
    weir_series series = {.size = sizeof series, .unit = "ms"};
    const double *bounds = wr_buckets_of(&series, &count);
    cr_assert(count == 22 && bounds[0] == 0.01 && bounds[8] == 5 && bounds[21] == 10000);
    static const struct {
        const char *unit;
        double factor; /* of milliseconds */
    } units[] = {{"s", 1e3}, {"us", 1e-3}, {"ns", 1e-6}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        series.unit = units[i].unit;
        const double *other = wr_buckets_of(&series, &count);
        cr_assert_eq(count, 22);
        for (size_t k = 0; k < count; k++) {
            cr_assert_float_eq(other[k] * units[i].factor, bounds[k], 1e-12 * bounds[k]);
            cr_assert(k == 0 || other[k - 1] < other[k]);
        }
    }
    series.unit = NULL;
    bounds = wr_buckets_of(&series, &count);
    cr_assert(count == 21 && bounds[0] == 1 && bounds[20] == 1048576);
    for (size_t i = 1; i < count; i++)
        cr_assert_lt(bounds[i - 1], bounds[i]);
    series.buckets = own;
    series.bucket_count = 2;
    cr_assert(wr_buckets_of(&series, &count) == own && count == 2);
}
