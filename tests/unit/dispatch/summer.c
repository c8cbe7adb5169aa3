/* What a lane's values are summed to, interval by interval. The wall clock is the test's. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#include "dispatch/summer.h"
#include "os/clock.h"
#include "producer/instrument.h"
#include "registry/family.h"
#include "registry/series.h"
#include "registry/stream.h"
#include "summary/buckets.h"
#include "summary/summary.h"
#include "text/error.h"

static const struct wr_summing summing = {.every_ns = WR_NS_PER_S, .parts = 1000};
static struct wr_registry registry;
static struct wr_segment_pool pool;
static struct wr_error error;
static struct weir_stream *stream;
static struct wr_summer *summer;
static int64_t wall_ns;

int64_t __wrap_wr_clock_wall_ns(void);

int64_t __wrap_wr_clock_wall_ns(void)
{
    return wall_ns;
}

static void setup(void)
{
    wall_ns = 1000 * WR_NS_PER_S;
    cr_assert(wr_registry_init(&registry));
    stream = wr_stream_get(&registry, "app", NULL, 0, &error);
    summer = wr_summer_new(&registry);
    cr_assert(summer);
    wr_summer_is_due(summer, &summing, 0);
}

static void teardown(void)
{
    wr_summer_discard(summer, false);
}

TestSuite(summer, .init = setup, .fini = teardown);

static struct weir_metric *declare(const char *name, enum weir_instrument instrument)
{
    const weir_metric_spec spec = {.size = sizeof spec, .instrument = (int)instrument};
    cr_assert_eq(wr_family_declare(&registry, stream, name, &spec, &error), 0);
    return wr_series_get(&registry, stream, name, 0, &error);
}

static enum wr_summed add(const struct weir_metric *metric, double value)
{
    const weir_sample sample = {.series = metric->series, .kind = WEIR_KIND_DOUBLE, .value.f64 = value};
    return wr_summer_add(summer, &summing, &sample);
}

/* Ends the interval, and reads the only summary, whose sketch is the test's to free. Returns false if there is
 * none. */
static bool end_with_sketch(struct wr_summary *summary)
{
    static struct wr_summary_room room;
    struct wr_segment *segment = wr_summer_end(summer, &summing, &pool, 0, false);
    wr_summer_postpone(summer, 0);
    if (!segment)
        return false;
    cr_assert_eq(segment->count, 1);
    cr_assert(wr_summary_read(summary, &room, wr_segment_texts(segment)[segment->samples[0].note], &error),
              "%s", error.text);
    wr_segment_drop(segment);
    return true;
}

static bool end(struct wr_summary *summary)
{
    bool is_there = end_with_sketch(summary);
    if (is_there)
        wr_sketch_fini(&summary->sketch);
    return is_there;
}

Test(summer, a_gauge_has_its_level_in_whatever_order_its_changes_are_read)
{
    struct weir_metric *gauge = declare("g", WEIR_GAUGE);
    struct wr_summary summary;
    double after_first, after_second;
    cr_assert(wr_instrument_change_level(wr_instrument_level(gauge), 1, &after_first));
    cr_assert(wr_instrument_change_level(wr_instrument_level(gauge), -1, &after_second));
    cr_assert_eq(add(gauge, after_second), WR_SUMMED);
    cr_assert_eq(add(gauge, after_first), WR_SUMMED);
    cr_assert(end(&summary));
    cr_assert(summary.kind == WEIR_GAUGE && summary.count == 2);
    cr_assert_eq(summary.last, 0);
    cr_assert(end(&summary));
    cr_assert(summary.count == 0 && summary.last == 0);
}

Test(summer, without_a_level_a_gauge_has_its_last_value)
{
    struct weir_metric *gauge = declare("g", WEIR_GAUGE);
    struct wr_summary summary;
    cr_assert_eq(add(gauge, 3), WR_SUMMED);
    cr_assert_eq(add(gauge, 7), WR_SUMMED);
    cr_assert(end(&summary));
    cr_assert_eq(summary.last, 7);
}

Test(summer, what_is_declared_within_an_interval_has_all_of_it_in_its_total)
{
    struct weir_metric *plain = wr_series_get(&registry, stream, "c", 0, &error);
    struct wr_summary summary;
    cr_assert_eq(add(plain, 500), WR_SUMMED);
    cr_assert(end(&summary));
    cr_assert(summary.kind == WEIR_VALUE && summary.count == 1);
    cr_assert_eq(add(plain, 7), WR_SUMMED);
    cr_assert_eq(declare("c", WEIR_COUNTER), plain);
    cr_assert_eq(add(plain, 10), WR_SUMMED);
    cr_assert(end(&summary));
    cr_assert(summary.kind == WEIR_COUNTER && summary.count == 2 && summary.sum == 17);
    cr_assert(summary.total_count == 2 && summary.total_sum == 17);
    cr_assert_eq(add(plain, 1), WR_SUMMED);
    cr_assert(end(&summary));
    cr_assert(summary.count == 1 && summary.total_sum == 18);
    const struct wr_summing of_two = {.every_ns = WR_NS_PER_S, .parts = 2};
    const weir_sample other = {.series = declare("d", WEIR_COUNTER)->series, .value.f64 = 1};
    cr_assert_eq(wr_summer_add(summer, &of_two, &other), WR_SUMMED, "\"c\" has the parts of a counter");
}

Test(summer, what_an_earlier_process_had_declared_is_summed_so)
{
    const weir_series recovered = {
        .size = sizeof recovered, .group = "g", .name = "c", .instrument = WEIR_COUNTER};
    struct weir_metric *plain = wr_series_get(&registry, stream, "c", 0, &error);
    struct wr_summary summary;
    wr_family_learn(&registry, plain, &recovered);
    cr_assert_eq(add(plain, 3), WR_SUMMED);
    cr_assert(end(&summary));
    cr_assert(summary.kind == WEIR_COUNTER && summary.total_sum == 3);
    cr_assert_eq(declare("c", WEIR_COUNTER), plain);
    cr_assert_eq(add(plain, 4), WR_SUMMED);
    cr_assert(end(&summary));
    cr_assert(summary.kind == WEIR_COUNTER && summary.total_sum == 7);
}

/* Returns the next series that is to be shown without a value, or NULL. */
static const struct weir_metric *next_declared(void)
{
    uint32_t series;
    return wr_summer_next_declared(summer, &series) ? wr_registry_series(&registry, series) : NULL;
}

Test(summer, a_part_of_a_series_is_not_shown_as_a_series)
{
    const struct wr_meaning meaning = {.instrument = WEIR_VALUE};
    struct weir_metric *own = declare("size.max", WEIR_HISTOGRAM);
    struct weir_metric *part = wr_series_derive(&registry, own->stream, "size.max", 0, &meaning);
    cr_assert(part && part != own);
    cr_assert_eq(part->view->instrument, WEIR_HISTOGRAM);
    cr_assert_eq(next_declared(), own);
    cr_assert_null(next_declared());
}

Test(summer, a_series_of_other_processes_is_shown_once_it_is_wanted_here)
{
    struct weir_metric *own = declare("own", WEIR_COUNTER), *theirs[3];
    static const char *const names[] = {"asked_for", "added_to", "left"};
    for (int i = 0; i < 3; i++)
        wr_series_recover(theirs[i] = declare(names[i], i ? WEIR_COUNTER : WEIR_HISTOGRAM));
    cr_assert_eq(next_declared(), own);
    cr_assert_null(next_declared());
    wr_series_meet(&registry, theirs[0]);
    wr_series_recover(theirs[0]);
    cr_assert_eq(next_declared(), own);
    cr_assert_eq(next_declared(), theirs[0]);
    cr_assert_null(next_declared());
    cr_assert_eq(add(theirs[1], 1), WR_SUMMED);
    cr_assert_eq(next_declared(), own);
    cr_assert_eq(next_declared(), theirs[0]);
    cr_assert_eq(next_declared(), theirs[1]);
    cr_assert_null(next_declared());
    wr_series_recover(own);
    wr_series_meet(&registry, own);
    cr_assert_eq(next_declared(), own);
}

Test(summer, a_gauge_that_was_never_a_number_has_no_summary)
{
    struct weir_metric *gauge = declare("g", WEIR_GAUGE);
    struct wr_summary summary;
    cr_assert_eq(add(gauge, NAN), WR_SUMMED_NOT);
    wr_instrument_set_level(gauge, INFINITY);
    cr_assert_eq(add(gauge, INFINITY), WR_SUMMED_NOT);
    cr_assert_not(end(&summary));
    wr_instrument_set_level(gauge, 5);
    cr_assert(end(&summary));
    cr_assert_eq(summary.last, 5);
}

Test(summer, what_would_make_a_sum_infinite_is_not_added)
{
    struct weir_metric *counter = declare("c", WEIR_COUNTER);
    struct wr_summary summary;
    cr_assert_eq(add(counter, DBL_MAX), WR_SUMMED);
    cr_assert_eq(add(counter, DBL_MAX), WR_SUMMED_NOT);
    cr_assert_eq(add(counter, 0), WR_SUMMED);
    cr_assert(end(&summary));
    cr_assert(summary.count == 2 && summary.sum == DBL_MAX && summary.total_sum == DBL_MAX);
    cr_assert_eq(add(counter, DBL_MAX), WR_SUMMED_NOT);
}

/* ---- What a thread has summed ----------------------------------------------------------------- */

static const double bounds[] = {1, 10};

/* What was taken of a cell of these bounds. */
static struct wr_cell_taken taken_of(const uint64_t *buckets, double sum, double min, double max)
{
    return (struct wr_cell_taken){
        .values = buckets[0] + buckets[1] + buckets[2],
        .sum = sum,
        .buckets = buckets,
        .bounds = bounds,
        .bucket_count = 3,
        .bounds_check = wr_buckets_check(bounds, 2),
        .min = min,
        .max = max,
    };
}

static struct weir_metric *declare_histogram(void)
{
    const weir_metric_spec spec = {
        .size = sizeof spec, .instrument = WEIR_HISTOGRAM, .buckets = bounds, .bucket_count = 2};
    cr_assert_eq(wr_family_declare(&registry, stream, "h", &spec, &error), 0);
    return wr_series_get(&registry, stream, "h", 0, &error);
}

static void add_taken(const struct weir_metric *metric, const uint64_t *buckets, double sum, double min,
                      double max)
{
    const struct wr_cell_taken taken = taken_of(buckets, sum, min, max);
    cr_assert_eq(wr_summer_add_taken(summer, &summing, metric->series, &taken), WR_SUMMED);
}

/* Ends the interval. */
static void check_summary(const uint64_t *buckets, double sum, double min, double max)
{
    struct wr_summary summary;
    cr_assert(end_with_sketch(&summary));
    for (int i = 0; i < 3; i++)
        cr_assert_eq(summary.buckets[i], buckets[i], "bucket %d: %lu", i, summary.buckets[i]);
    cr_assert_eq(summary.count, buckets[0] + buckets[1] + buckets[2]);
    cr_assert_eq(summary.sketch.count, summary.count);
    cr_assert_eq(summary.sum, sum, "%g", summary.sum);
    cr_assert(summary.sketch.min == min && summary.sketch.max == max, "%g, %g", summary.sketch.min,
              summary.sketch.max);
    wr_sketch_fini(&summary.sketch);
}

Test(summer, the_values_of_a_histogram_may_come_by_their_buckets)
{
    struct weir_metric *histogram = declare_histogram();
    struct wr_summary summary;
    add_taken(histogram, (const uint64_t[]){2, 3, 1}, 63, -3, 50);
    check_summary((const uint64_t[]){2, 3, 1}, 63, -3, 50);
    add_taken(histogram, (const uint64_t[]){0, 1, 0}, 4, 4, 4);
    check_summary((const uint64_t[]){0, 1, 0}, 4, 4, 4);
    add_taken(histogram, (const uint64_t[]){0, 2, 0}, 9, 4, 5); /* of two threads, and by the ring */
    add_taken(histogram, (const uint64_t[]){0, 0, 2}, 41, 20, 21);
    cr_assert_eq(add(histogram, 0.5), WR_SUMMED);
    check_summary((const uint64_t[]){1, 2, 2}, 50.5, 0.5, 21);
    add_taken(histogram, (const uint64_t[]){100, 800, 100}, 6000, 0, 99);
    cr_assert(end_with_sketch(&summary));
    cr_assert_eq(summary.total_count, 1012);
    cr_assert_eq(summary.total_buckets[2], 103);
    cr_assert_float_eq(wr_sketch_quantile(&summary.sketch, 0.05), 1, 0.01);
    cr_assert_float_eq(wr_sketch_quantile(&summary.sketch, 0.5), 10, 0.1);
    cr_assert_float_eq(wr_sketch_quantile(&summary.sketch, 0.95), 99, 1);
    wr_sketch_fini(&summary.sketch);
}

/* A value that was being added may be counted with the extremes of the values after it. */
Test(summer, extremes_that_do_not_fit_the_buckets_lose_no_value)
{
    struct weir_metric *histogram = declare_histogram();
    add_taken(histogram, (const uint64_t[]){3, 0, 0}, 2, 20, 30);
    check_summary((const uint64_t[]){3, 0, 0}, 2, 20, 30);
    add_taken(histogram, (const uint64_t[]){0, 0, 1}, 50, 2, 3);
    check_summary((const uint64_t[]){0, 0, 1}, 50, 3, 3);
}

static void expect_total(uint64_t count, double sum)
{
    struct wr_summary summary;
    cr_assert(end(&summary));
    cr_assert(summary.total_count == count && summary.total_sum == sum, "%lu, %g", summary.total_count,
              summary.total_sum);
}

/* Each of two summers was missing while the other one had values. */
Test(summer, a_total_is_not_replaced_by_one_that_lacks_some_of_its_values)
{
    const struct weir_metric *histogram = declare_histogram();
    struct wr_summer *other = wr_summer_new(&registry), *own = summer;
    add_taken(histogram, (const uint64_t[]){0, 0, 2}, 60, 29, 31);
    summer = other;
    add_taken(histogram, (const uint64_t[]){1, 8, 0}, 64, 1, 8);
    wr_summer_take_over(own, &summing, other, histogram->series); /* the last bucket would go back */
    summer = own;
    expect_total(2, 60);
    summer = other;
    add_taken(histogram, (const uint64_t[]){0, 0, 2}, 22, 11, 11);
    wr_summer_take_over(own, &summing, other, histogram->series);
    summer = own;
    expect_total(11, 86);
    wr_summer_discard(other, false);
    wr_summer_free(other);
}

Test(summer, a_sum_that_would_go_back_is_replaced_if_values_are_negative)
{
    const struct weir_metric *histogram = declare_histogram();
    struct wr_summer *other = wr_summer_new(&registry), *own = summer;
    add_taken(histogram, (const uint64_t[]){1, 0, 0}, 0.5, 0.5, 0.5);
    summer = other;
    add_taken(histogram, (const uint64_t[]){2, 0, 0}, 0.25, 0, 0.25);
    wr_summer_take_over(own, &summing, other, histogram->series);
    summer = own;
    expect_total(1, 0.5);
    summer = other;
    add_taken(histogram, (const uint64_t[]){1, 0, 0}, -3, -3, -3);
    wr_summer_take_over(own, &summing, other, histogram->series);
    summer = own;
    expect_total(3, -2.75);
    wr_summer_discard(other, false);
    wr_summer_free(other);
}

/* Others were declared meanwhile, or none. */
Test(summer, values_of_other_buckets_are_sorted_by_the_bounds_of_those)
{
    struct weir_metric *histogram = declare_histogram();
    static const double others[] = {5, 20};
    struct wr_cell_taken taken = taken_of((const uint64_t[]){2, 0, 2}, 60, 1, 29);
    struct wr_summary summary;
    taken.bounds = others;
    taken.bounds_check = wr_buckets_check(others, 2);
    cr_assert_eq(wr_summer_add_taken(summer, &summing, histogram->series, &taken), WR_SUMMED);
    check_summary((const uint64_t[]){1, 1, 2}, 60, 1, 29);
    wr_summer_end_series(summer, histogram->series);
    cr_assert(end(&summary));
    const struct weir_metric *plain = wr_series_get(&registry, stream, "v", 0, &error);
    cr_assert_eq(wr_summer_add_taken(summer, &summing, plain->series, &taken), WR_SUMMED);
    cr_assert(end_with_sketch(&summary));
    cr_assert(summary.kind == WEIR_VALUE && summary.count == 4 && summary.sum == 60);
    cr_assert(summary.sketch.min == 1 && summary.sketch.max == 29);
    wr_sketch_fini(&summary.sketch);
}

/* ---- Times ------------------------------------------------------------------------------------ */

Test(summer, times_follow_the_wall_clock_back)
{
    struct weir_metric *counter = declare("c", WEIR_COUNTER);
    struct wr_summary before, summary;
    add(counter, 1);
    cr_assert(end(&before));
    cr_assert_eq(before.end_ns, 1001 * WR_NS_PER_S);
    wall_ns -= 500 * WR_NS_PER_S;
    cr_assert(end(&summary)); /* it began before, and ends when it was to */
    for (int64_t i = 1; i < 3; i++) {
        wall_ns += WR_NS_PER_S;
        cr_assert(end(&summary));
        cr_assert_eq(summary.end_ns, (500 + i) * WR_NS_PER_S);
        cr_assert_leq(summary.start_ns, summary.end_ns);
        cr_assert_leq(summary.since_ns, summary.end_ns);
    }
}

Test(summer, times_ascend_if_the_clock_is_only_a_little_late)
{
    struct weir_metric *counter = declare("c", WEIR_COUNTER);
    struct wr_summary before, summary;
    wall_ns += WR_NS_PER_S / 2;
    wr_summer_postpone(summer, 0);
    add(counter, 1);
    cr_assert(end(&before));
    wall_ns -= WR_NS_PER_S;
    wr_summer_postpone(summer, 0);
    cr_assert(end(&summary));
    cr_assert_gt(summary.end_ns, before.end_ns);
}
