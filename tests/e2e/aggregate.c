/* Handlers that get summaries in place of values ("aggregate"), as they receive them. The interval is a day,
 * and a flush ends it early, so no test depends on the time. */

#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "api_capture.h"
#include "api_ledger.h"
#include "day.h"

static weir_stream *stream;

static void configure(const char *options)
{
    cr_assert_eq(weir_configure("*", "capture", options), 0, "%s", weir_last_error());
}

static void set_up(void)
{
    await_day();
    capture_register();
    configure("{\"aggregate\": \"1d\"}");
    stream = weir_get_stream("app");
}

TestSuite(aggregate, .init = set_up);

static weir_handler_stats stats_of(const char *handler)
{
    weir_handler_stats stats;
    cr_assert_eq(weir_get_handler_stats(handler, &stats, sizeof stats), 0, "%s", weir_last_error());
    return stats;
}

/* Ends the interval and delivers it. */
static void deliver(void)
{
    cr_assert_eq(weir_flush(-1), 0, "%s", weir_last_error());
    assert_ledger("capture");
    cr_assert_eq(stats_of("capture").summing, 0);
}

/* The last sample of a name and labels. */
static const struct captured *find(const char *name, const char *labels)
{
    for (size_t i = capture_count(); i-- > 0;)
        if (strcmp(capture_at(i)->name, name) == 0 && strcmp(capture_at(i)->labels, labels) == 0)
            return capture_at(i);
    return NULL;
}

static void expect(const char *name, double value)
{
    const struct captured *sample = find(name, "");
    cr_assert(sample, "there is no %s", name);
    cr_assert_eq(sample->value, value, "%s is %g", name, sample->value);
}

static void expect_total(const char *name, double value)
{
    expect(name, value);
    cr_assert(find(name, "")->total && find(name, "")->cumulative, "%s is no total", name);
}

static void expect_near(const char *name, double value)
{
    const struct captured *sample = find(name, "");
    cr_assert(sample, "there is no %s", name);
    cr_assert(fabs(sample->value - value) <= value * 0.01, "%s is %g", name, sample->value);
}

/* ---- What a destination sees ----------------------------------------------------------------- */

Test(aggregate, a_counter_is_a_running_total)
{
    weir_metric *requests = weir_get_counter(stream, "requests");
    for (int i = 0; i < 1000; i++)
        weir_metric_add(requests, 1);
    deliver();
    cr_assert_eq(capture_count(), 1);
    expect_total("requests", 1000);
    weir_metric_add(requests, 0.5);
    deliver();
    expect_total("requests", 1000.5);
    deliver();
    cr_assert_eq(capture_count(), 3, "the total again, though nothing came");
    expect_total("requests", 1000.5);
}

Test(aggregate, a_declared_counter_is_0_before_its_first_value)
{
    weir_get_counter(stream, "errors");
    weir_get_gauge(stream, "level");
    weir_add_value(stream, "other", 1);
    deliver();
    expect_total("errors", 0);
    cr_assert_not(find("level", ""), "a level is not known before it is set");
}

Test(aggregate, a_gauge_is_its_level)
{
    weir_metric *level = weir_get_gauge(stream, "level");
    weir_metric_add(level, 5);
    weir_metric_change(level, 2);
    deliver();
    cr_assert_eq(capture_count(), 1);
    expect("level", 7);
    deliver();
    cr_assert_eq(capture_count(), 2, "the level again");
}

/* Adds 1 to the level in each round, and lets the test go on. */
struct turns {
    weir_metric *gauge;
    pthread_barrier_t changed, next;
};

enum { ROUNDS = 300 };

static void *take_turns(void *argument)
{
    struct turns *turns = argument;
    for (int i = 0; i < ROUNDS; i++) {
        weir_metric_change(turns->gauge, 1);
        pthread_barrier_wait(&turns->changed);
        pthread_barrier_wait(&turns->next);
    }
    return NULL;
}

Test(aggregate, a_gauge_that_threads_change_in_turn_is_its_level_whatever_ring_is_read_first, .timeout = 300)
{
    struct turns turns = {.gauge = weir_get_gauge(stream, "in_flight")};
    pthread_t thread;
    pthread_barrier_init(&turns.changed, NULL, 2);
    pthread_barrier_init(&turns.next, NULL, 2);
    weir_metric_add(turns.gauge, 0); /* this thread's ring is the first */
    cr_assert_eq(pthread_create(&thread, NULL, take_turns, &turns), 0);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&turns.changed);
        weir_metric_change(turns.gauge, -1);
        deliver();
        expect("in_flight", 0);
        pthread_barrier_wait(&turns.next);
    }
    pthread_join(thread, NULL);
}

Test(aggregate, a_value_is_delivered_in_parts)
{
    for (int i = 1; i <= 1000; i++)
        weir_add_int(stream, "latency", i);
    deliver();
    expect("latency.count", 1000);
    expect("latency.sum", 500500);
    expect("latency.min", 1);
    expect("latency.max", 1000);
    expect("latency.last", 1000);
    expect_near("latency.p50", 500);
    expect_near("latency.p90", 900);
    expect_near("latency.p99", 990);
    expect_near("latency.p99_9", 999);
    cr_assert_eq(capture_count(), 9);
    cr_assert(capture_at(0)->more && !capture_at(8)->more, "they are one event");
    deliver();
    cr_assert_eq(capture_count(), 9, "nothing came, and nothing is delivered");
    weir_add_value(stream, "latency", 7);
    deliver();
    expect("latency.count", 1);
    expect("latency.p99", 7);
}

static void check_histogram(void)
{
    static const double bounds[] = {1, 10};
    weir_metric *size = weir_get_histogram(stream, "size", bounds, 2);
    for (int i = 0; i < 20; i++)
        weir_metric_add(size, i);
    deliver();
    expect_total("size.count", 20);
    expect_total("size.sum", 190);
    expect("size.max", 19);
    cr_assert_eq(find("size.bucket", "le=1")->value, 2, "the bound is in the bucket");
    cr_assert_eq(find("size.bucket", "le=10")->value, 11, "each includes those below");
    cr_assert_eq(find("size.bucket", "le=+Inf")->value, 20);
    weir_metric_add(size, 100);
    deliver();
    expect_total("size.count", 21);
    expect("size.min", 100);
    expect("size.max", 100);
    cr_assert_eq(find("size.bucket", "le=+Inf")->value, 21);
    deliver();
    expect_total("size.count", 21);
    weir_metric_add(size, -1e9);
    weir_metric_add_int(size, 10);
    weir_metric_add(size, 0.25);
    deliver();
    expect("size.min", -1e9);
    expect("size.max", 10);
    expect_total("size.sum", 290 - 1e9 + 10.25);
    cr_assert_eq(find("size.bucket", "le=1")->value, 4);
    cr_assert_eq(find("size.bucket", "le=10")->value, 14);
    cr_assert_neq(weir_metric_add(size, NAN), 0);
    cr_assert_neq(weir_metric_add(size, INFINITY), 0);
    deliver();
    expect_total("size.count", 24);
}

Test(aggregate, a_histogram_has_totals_for_its_buckets)
{
    check_histogram();
    cr_assert(find("size.p50", ""));
}

/* Its values are summed by the calls. */
Test(aggregate, without_percentiles_a_histogram_is_the_same_otherwise)
{
    configure("{\"aggregate\": \"1d\", \"percentiles\": []}");
    check_histogram();
    cr_assert_null(find("size.p50", ""));
}

Test(aggregate, what_is_measured_has_a_counter_and_a_histogram_with_and_without_percentiles)
{
    const weir_label get = {"route", "/get"};
    for (int turn = 1; turn <= 4; turn++) {
        configure(turn % 2 ? "{\"aggregate\": \"1d\", \"percentiles\": []}" : "{\"aggregate\": \"1d\"}");
        for (int i = 0; i < 100; i++) {
            weir_prof prof = weir_prof_begin(stream, "handle");
            if (i % 10 == 0)
                weir_prof_fail(&prof);
            weir_prof_end_labeled(&prof, &get, (size_t)(i % 2));
        }
        deliver();
        expect_total("handle.success", 40 * turn);
        expect_total("handle.failure", 10 * turn);
        expect_total("handle.duration.ms.count", 50 * turn);
        cr_assert_eq(find("handle.success", "route=/get")->value, 50 * turn);
        cr_assert_eq(find("handle.duration.ms.count", "route=/get")->value, 50 * turn);
        cr_assert_eq(find("handle.duration.ms.bucket", "le=+Inf")->value, 50 * turn);
    }
}

static void *observe(void *metric)
{
    for (int i = 0; i < 1000; i++)
        weir_metric_add(metric, i % 20);
    return NULL;
}

/* What a thread has added stays when it ends. */
Test(aggregate, a_histogram_has_the_values_of_all_threads)
{
    static const double bounds[] = {4, 9, 14};
    pthread_t threads[4];
    configure("{\"aggregate\": \"1d\", \"percentiles\": []}");
    weir_metric *size = weir_get_histogram(stream, "size", bounds, 3);
    for (int turn = 1; turn <= 3; turn++) {
        for (int i = 0; i < 4; i++)
            cr_assert_eq(pthread_create(&threads[i], NULL, observe, size), 0);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        deliver();
        expect_total("size.count", 4000 * turn);
        expect_total("size.sum", 4000 * turn * 9.5);
        cr_assert_eq(find("size.bucket", "le=4")->value, 1000 * turn);
        cr_assert_eq(find("size.bucket", "le=14")->value, 3000 * turn);
        expect("size.min", 0);
        expect("size.max", 19);
    }
}

/* A percentile that is wanted from now on is of the values from then on. */
Test(aggregate, a_histogram_goes_on_when_percentiles_are_wanted_and_no_longer)
{
    static const double bounds[] = {10, 1000};
    weir_metric *size = weir_get_histogram(stream, "size", bounds, 2);
    for (int turn = 1; turn <= 4; turn++) {
        configure(turn % 2 ? "{\"aggregate\": \"1d\", \"percentiles\": []}"
                           : "{\"aggregate\": \"1d\", \"percentiles\": [50]}");
        for (int i = 1; i <= 100; i++)
            weir_metric_add(size, i);
        deliver();
        expect_total("size.count", 100 * turn);
        cr_assert_eq(find("size.bucket", "le=10")->value, 10 * turn);
        if (turn % 2 == 0)
            expect_near("size.p50", 50);
        cr_assert_eq(find("size.p50", "") != NULL, turn > 1);
    }
}

/* What came before is in the same interval. */
Test(aggregate, a_value_that_is_declared_a_histogram_keeps_its_extremes)
{
    static const double bounds[] = {10, 100};
    configure("{\"aggregate\": \"1d\", \"percentiles\": []}");
    weir_add_value(stream, "size", 5);
    weir_metric *size = weir_get_histogram(stream, "size", bounds, 2);
    for (int i = 1; i <= 1000; i++)
        weir_metric_add(size, i);
    deliver();
    expect("size.min", 1);
    expect("size.max", 1000);
    expect("size.count", 1001);
    expect("size.sum", 500505);
}

static void check_other_buckets(const char *percentiles)
{
    static const char pattern[] =
        "{\"metrics\": {\"app\": {\"size\": {\"instrument\": \"histogram\", \"buckets\": [1, 10]}}}, "
        "\"handlers\": {\"capture\": {\"type\": \"capture\", \"aggregate\": \"1h\", \"percentiles\": %s}}, "
        "\"groups\": {\"*\": \"capture\"}}";
    char first[400], second[sizeof first];
    snprintf(first, sizeof first, pattern, percentiles);
    memcpy(second, first, sizeof first);
    memcpy(strstr(second, "10]"), "20]", 3);
    cr_assert_eq(weir_configure_text(first, strlen(first)), 0, "%s", weir_last_error());
    for (int i = 0; i < 20; i++)
        weir_add_value(stream, "size", i);
    deliver();
    cr_assert_eq(find("size.bucket", "le=10")->value, 11);
    cr_assert_eq(weir_configure_text(second, strlen(second)), 0, "%s", weir_last_error());
    deliver(); /* what was open is not under the new bounds */
    cr_assert(!find("size.bucket", "le=20") || find("size.bucket", "le=20")->value == 0);
    weir_add_value(stream, "size", 15);
    deliver();
    cr_assert_eq(find("size.bucket", "le=20")->value, 1);
    cr_assert_eq(find("size.bucket", "le=+Inf")->value, 1);
    expect_total("size.count", 1);
    cr_assert_eq(weir_configure_text(first, strlen(first)), 0, "%s", weir_last_error());
    deliver();
    weir_add_value(stream, "size", 7);
    deliver();
    cr_assert_eq(find("size.bucket", "le=10")->value, 1);
    cr_assert_eq(find("size.bucket", "le=1")->value, 0);
    expect_total("size.count", 1);
}

Test(aggregate, buckets_that_are_declared_anew_begin_with_totals_of_0)
{
    check_other_buckets("[50]");
}

Test(aggregate, so_do_they_without_percentiles)
{
    check_other_buckets("[]");
}

Test(aggregate, the_parts_of_a_histogram_keep_its_unit_and_its_totals_its_instrument)
{
    const weir_metric_spec spec = {
        .size = sizeof spec, .instrument = WEIR_HISTOGRAM, .unit = "ms", .help = "how long it takes"};
    weir_declare(stream, "took", &spec);
    weir_add_value(stream, "took", 3);
    deliver();
    cr_assert_eq(find("took.count", "")->instrument, WEIR_HISTOGRAM);
    cr_assert_eq(find("took.bucket", "le=+Inf")->instrument, WEIR_HISTOGRAM);
    cr_assert_eq(find("took.sum", "")->instrument, WEIR_HISTOGRAM);
    cr_assert_str_eq(find("took.sum", "")->unit, "ms");
    cr_assert_str_eq(find("took.sum", "")->help, "how long it takes");
    cr_assert_eq(find("took.max", "")->instrument, WEIR_VALUE);
    cr_assert_str_eq(find("took.max", "")->unit, "ms");
}

Test(aggregate, a_name_that_is_declared_keeps_its_meaning_when_it_is_a_part_too)
{
    const weir_metric_spec spec = {.size = sizeof spec, .instrument = WEIR_GAUGE, .unit = "own"};
    weir_declare(stream, "took.sum", &spec);
    weir_metric_add(weir_get_histogram(stream, "took", NULL, 0), 3);
    deliver();
    cr_assert_eq(find("took.sum", "")->instrument, WEIR_GAUGE);
    cr_assert_str_eq(find("took.sum", "")->unit, "own");
}

/* Whatever the order in which they are made. */
Test(aggregate, a_name_that_is_called_like_a_part_is_kept_apart_from_it)
{
    weir_metric *first = weir_get_histogram(stream, "first", NULL, 0);
    weir_metric_add(first, 2);
    deliver();
    expect("first.max", 2);
    expect_total("first.sum", 2);
    weir_metric_add(weir_get_gauge(stream, "first.max"), 40);
    weir_metric_add(weir_get_gauge(stream, "second.last"), 50);
    weir_sample_spec total = {.size = sizeof total, .name = "third.sum", .value = 60, .cumulative = true};
    cr_assert_eq(weir_add(stream, &total), 0);
    weir_metric_add(first, 3);
    weir_add_value(stream, "second", 4);
    weir_metric_add(weir_get_histogram(stream, "third", NULL, 0), 5);
    deliver();
    expect("first.max", 40);
    expect("first.distribution.max", 3);
    expect_total("first.distribution.sum", 5);
    expect("second.last", 50);
    expect("second.distribution.last", 4);
    expect_total("third.sum", 60);
    expect_total("third.distribution.sum", 5);
    cr_assert_eq(find("third.distribution.sum", "")->instrument, WEIR_HISTOGRAM);
    deliver();
    expect_total("first.distribution.count", 2);
    cr_assert_eq(find("first.max", "")->instrument, WEIR_GAUGE, "also without values");
}

Test(aggregate, a_name_that_is_only_delivered_in_parts_is_no_part)
{
    weir_add_value(stream, "size", 1);
    weir_add_value(stream, "size.sum", 2);
    weir_metric_add(weir_get_histogram(stream, "size.count", NULL, 0), 3);
    deliver();
    expect("size.sum", 1);
    expect("size.sum.last", 2);
    expect("size.count", 1);
    expect_total("size.count.sum", 3);
}

/* Declared when its parts were delivered already, and by a name that has no series when it is declared. */
Test(aggregate, a_declaration_takes_the_name_of_a_part)
{
    weir_metric_spec counter = {.size = sizeof counter, .instrument = WEIR_COUNTER};
    weir_add_value(stream, "size", 1);
    weir_add_value(stream, "size.sum", 2);
    deliver();
    expect("size.sum", 1);
    cr_assert_eq(weir_declare(stream, "size.sum", &counter), 0);
    cr_assert_eq(weir_declare(stream, "size.distribution.count", &counter), 0);
    weir_add_value(stream, "size", 3);
    weir_count(stream, "size.distribution.count", 7);
    deliver();
    expect("size.distribution.distribution.sum", 3);
    expect_total("size.distribution.count", 7);
}

Test(aggregate, percentiles_are_configured)
{
    configure("{\"aggregate\": \"1d\", \"percentiles\": [75, 99.95]}");
    for (int i = 1; i <= 10000; i++)
        weir_add_int(stream, "a", i);
    deliver();
    expect_near("a.p75", 7500);
    expect_near("a.p99_95", 9995);
    cr_assert_not(find("a.p50", ""));
}

Test(aggregate, events_dissolve_and_labels_stay)
{
    weir_label get = {"route", "/get"}, put = {"route", "/put"};
    weir_count(weir_get_stream("app"), "requests", 1);
    weir_add_value_labeled(stream, "size", 1, &get, 1);
    weir_add_value_labeled(stream, "size", 2, &put, 1);
    WEIR_EMIT(stream, {"loss", 0.5}, {"accuracy", 0.9});
    deliver();
    cr_assert_eq(find("size.sum", "route=/get")->value, 1);
    cr_assert_eq(find("size.sum", "route=/put")->value, 2);
    expect("loss.last", 0.5);
    expect("accuracy.last", 0.9);
    cr_assert_eq(stats_of("capture").delivered, 5);
}

Test(aggregate, a_running_total_stays_one)
{
    weir_sample_spec spec = {.size = sizeof spec, .name = "jiffies", .value = 100, .cumulative = true};
    weir_add(stream, &spec);
    spec.value = 130;
    weir_add(stream, &spec);
    deliver();
    cr_assert_eq(capture_count(), 1);
    expect_total("jiffies", 130);
}

/* ---- The ledger ------------------------------------------------------------------------------ */

Test(aggregate, values_of_the_open_interval_are_in_the_ledger)
{
    for (int i = 0; i < 500; i++)
        weir_add_value(stream, "a", i);
    weir_handler_stats stats = stats_of("capture");
    while (stats.offered < 500) {
        assert_ledger("capture");
        stats = stats_of("capture");
    }
    cr_assert(stats.summing == 500 && stats.delivered == 0 && stats.queued == 0);
    deliver();
    cr_assert_eq(stats_of("capture").delivered, 500);
}

Test(aggregate, what_is_no_number_is_dropped_and_counted)
{
    weir_add_value(stream, "a", 1);
    weir_add_value(stream, "a", NAN);
    weir_add_value(stream, "a", INFINITY);
    cr_assert_eq(weir_flush(-1), WEIR_ERR_DROPPED);
    assert_ledger("capture");
    cr_assert_eq(stats_of("capture").dropped[WEIR_DROPPED_UNREPRESENTABLE], 2);
    expect("a.count", 1);
}

Test(aggregate, an_increment_that_would_make_a_total_infinite_is_refused_alone)
{
    weir_metric *bytes = weir_get_counter(stream, "bytes");
    weir_metric_add(bytes, 1); /* a thread's first value goes another way */
    weir_metric_add(bytes, 4e304);
    cr_assert_eq(weir_metric_add(bytes, 4e304), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_metric_add(bytes, 1e308), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_metric_add(bytes, 1), 0, "%s", weir_last_error());
    deliver();
    expect_total("bytes", 4e304);
    cr_assert_eq(stats_of("capture").delivered, 3);
}

Test(aggregate, a_series_that_begins_anew_counts_small_increments_after_large_ones)
{
    weir_metric *bytes = weir_get_counter(stream, "bytes");
    weir_metric_add(bytes, 1e17);
    deliver();
    cr_assert_eq(weir_metric_remove(bytes), 0, "%s", weir_last_error());
    for (int i = 1; i <= 3; i++) {
        weir_metric_add(bytes, 1);
        deliver();
        expect_total("bytes", i);
    }
}

Test(aggregate, values_of_too_many_series_are_dropped_and_counted)
{
    configure("{\"aggregate\": \"1d\", \"aggregate_series\": 27}"); /* a value has nine parts */
    for (int i = 0; i < 50; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i % 5);
        weir_add_value(stream, name, 1);
    }
    cr_assert_eq(weir_flush(-1), WEIR_ERR_DROPPED);
    assert_ledger("capture");
    cr_assert_eq(stats_of("capture").dropped[WEIR_DROPPED_LIMIT], 20);
    cr_assert_eq(stats_of("capture").delivered, 30);
}

Test(aggregate, parts_and_buckets_count_for_the_limit_of_series)
{
    const double bounds[] = {1, 2};
    const char *const names[] = {"h0", "h1", "h2"};
    weir_metric *histograms[3];
    /* 9 parts each */
    configure("{\"aggregate\": \"1d\", \"percentiles\": [50, 90], \"aggregate_series\": 18}");
    for (int i = 0; i < 3; i++) {
        histograms[i] = weir_get_histogram(stream, names[i], bounds, 2);
        weir_metric_add(histograms[i], 1);
    }
    weir_metric_add(weir_get_counter(stream, "c"), 1);
    cr_assert_eq(weir_flush(-1), WEIR_ERR_DROPPED);
    cr_assert_eq(stats_of("capture").dropped[WEIR_DROPPED_LIMIT], 2);
    cr_assert_eq(stats_of("capture").delivered, 2);

    cr_assert_eq(weir_metric_remove(histograms[0]), 0);
    cr_assert_eq(weir_flush(-1), 0);
    for (int i = 0; i < 9; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        weir_metric_add(weir_get_counter(stream, name), 1);
    }
    cr_assert_eq(weir_flush(-1), 0);
    weir_metric_add(histograms[2], 1);
    cr_assert_eq(weir_flush(-1), WEIR_ERR_DROPPED);
    cr_assert_eq(stats_of("capture").dropped[WEIR_DROPPED_LIMIT], 3);
    cr_assert_eq(stats_of("capture").delivered, 11);
    assert_ledger("capture");
}

Test(aggregate, a_summary_that_is_rejected_drops_all_its_values)
{
    capture_fail(WEIR_OUTCOME_DROP, "refused");
    for (int i = 0; i < 100; i++)
        weir_add_value(stream, "a", i);
    cr_assert_eq(weir_flush(-1), WEIR_ERR_DROPPED);
    assert_ledger("capture");
    cr_assert_eq(stats_of("capture").dropped[WEIR_DROPPED_REJECTED], 100);
}

/* Names and labels may come from anywhere, so no summary may stop the others: this had been retried for ever.
 */
Test(aggregate, a_summary_whose_parts_cannot_be_written_drops_only_its_own_values)
{
    char keys[64][8], name[256];
    weir_label many[64], le = {"le", "5"};
    for (size_t i = 0; i < 64; i++) {
        snprintf(keys[i], sizeof keys[i], "k%zu", i);
        many[i] = (weir_label){keys[i], "v"};
    }
    memset(name, 'n', 250);
    name[250] = '\0';
    cr_assert(weir_get_histogram(stream, "lat", NULL, 0));
    weir_metric *fine = weir_get_counter(stream, "fine");
    for (int round = 1; round <= 3; round++) {
        cr_assert_eq(weir_add_value_labeled(stream, "lat", 1, &le, 1), 0);
        cr_assert_eq(weir_add_value_labeled(stream, "lat", 2, many, 64), 0);
        cr_assert_eq(weir_add_value_labeled(stream, "lat", 3, many, 63), 0);
        cr_assert_eq(weir_add_value(stream, name, 4), 0);
        weir_metric_add(fine, 1);
        cr_assert_eq(weir_flush(60000), WEIR_ERR_DROPPED);
        assert_ledger("capture");
        expect_total("fine", round);
        weir_handler_stats stats = stats_of("capture");
        cr_assert_eq(stats.delivered, (uint64_t)round * 2);
        cr_assert_eq(stats.dropped[WEIR_DROPPED_REJECTED], (uint64_t)round * 3);
        cr_assert_eq(stats.queued + stats.summing, 0);
    }
}

Test(aggregate, a_failing_handler_gets_the_same_summary_again)
{
    capture_fail(WEIR_OUTCOME_RETRY, "not now");
    for (int i = 0; i < 100; i++)
        weir_count(stream, "a", 1);
    cr_assert_eq(weir_flush(200), WEIR_ERR_TIMEOUT);
    assert_ledger("capture");
    cr_assert_eq(stats_of("capture").queued, 100);
    capture_fail(WEIR_OUTCOME_OK, NULL);
    deliver();
    expect_total("a", 100);
    cr_assert_eq(stats_of("capture").delivered, 100);
}

static void *add_many(void *argument)
{
    weir_metric *metric = argument;
    for (int i = 0; i < 100000; i++)
        weir_metric_add(metric, 1);
    return NULL;
}

/* With a queue of 1 KiB, which holds few summaries, intervals become longer, and calls never wait. */
Test(aggregate, a_handler_that_is_stuck_costs_resolution_but_no_values, .timeout = 120)
{
    pthread_t threads[4];
    weir_metric *metric = weir_get_metric(stream, "a");
    configure("{\"aggregate\": \"10ms\", \"queue\": \"1KiB\"}");
    capture_hold();
    weir_metric_add(metric, 1);
    capture_wait_held();
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, add_many, metric), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_ledger("capture");
    capture_release();
    deliver();
    double count = 0;
    for (size_t i = 0; i < capture_count(); i++)
        count += strcmp(capture_at(i)->name, "a.count") == 0 ? capture_at(i)->value : 0;
    cr_assert_eq(count, 400001);
    cr_assert_eq(stats_of("capture").delivered, 400001);
}

static void expect_reached(size_t first, size_t last)
{
    double most = 0;
    for (size_t i = first; i < last; i++)
        most = fmax(most, capture_at(i)->value);
    cr_assert_eq(most, 1000);
}

/* Each flush would add the summaries of all declared series, however full the queue is. */
Test(aggregate, flushes_do_not_fill_the_memory_while_the_destination_is_down)
{
    configure("{\"aggregate\": \"1h\", \"queue\": \"4KiB\"}");
    capture_fail(WEIR_OUTCOME_RETRY, "not now");
    for (int i = 0; i < 1000; i++) {
        weir_count(stream, "a", 1);
        if (i % 10 == 0)
            cr_assert_neq(weir_flush(0), 0);
        cr_assert_lt(stats_of("capture").queue_bytes, 8192);
    }
    assert_ledger("capture");
    cr_assert_gt(stats_of("capture").summing, 0);
    capture_fail(WEIR_OUTCOME_OK, NULL);
    deliver();
    expect_reached(0, capture_count());
    cr_assert_eq(stats_of("capture").delivered, 1000);
}

/* ---- Configuring ----------------------------------------------------------------------------- */

Test(aggregate, the_same_configuration_goes_on_with_the_interval)
{
    weir_add_value(stream, "a", 1);
    configure("{\"aggregate\": \"1d\"}");
    weir_add_value(stream, "a", 2);
    deliver();
    expect("a.count", 2);
}

Test(aggregate, another_interval_ends_the_open_one_and_totals_go_on)
{
    weir_count(stream, "a", 1);
    configure("{\"aggregate\": \"2h\"}");
    weir_count(stream, "a", 2);
    deliver();
    expect_total("a", 3);
    cr_assert_eq(capture_count(), 2);
    cr_assert_eq(capture_at(0)->value, 1);
    cr_assert_lt(capture_at(0)->time_ns, capture_at(1)->time_ns);
}

Test(aggregate, the_open_interval_of_a_removed_handler_is_delivered)
{
    static const char none[] = "{\"groups\": {\"*\": \"null\"}}";
    weir_count(stream, "a", 3);
    cr_assert_eq(weir_configure_text(none, strlen(none)), 0, "%s", weir_last_error());
    cr_assert_eq(weir_flush(-1), 0, "%s", weir_last_error());
    expect_total("a", 3);
    assert_ledger("capture");
    cr_assert_eq(stats_of("capture").delivered, 1);
}

Test(aggregate, a_handler_that_is_added_later_has_the_levels_of_gauges)
{
    static const char none[] = "{\"groups\": {\"*\": \"null\"}}";
    cr_assert_eq(weir_configure_text(none, strlen(none)), 0, "%s", weir_last_error());
    weir_metric_add(weir_get_gauge(stream, "level"), 5);
    weir_get_gauge(stream, "unknown");
    cr_assert_eq(weir_flush(-1), 0);
    configure("{\"aggregate\": \"1d\"}");
    deliver();
    expect("level", 5);
    cr_assert_not(find("unknown", ""));
    cr_assert_eq(stats_of("capture").offered, 0);
}

/* What no route leads to any more has no more summaries; what one leads to again goes on with its total. */
Test(aggregate, a_group_that_is_routed_elsewhere_ends_its_summaries)
{
    static const char both[] = "{\"handlers\": {\"capture\": {\"type\": \"capture\", \"aggregate\": \"1h\"}}, "
                               "\"groups\": {\"*\": \"capture\", \"app\": \"null\"}}";
    weir_count(stream, "a", 3);
    weir_count(weir_get_stream("other"), "b", 1);
    deliver();
    cr_assert_eq(weir_configure_text(both, strlen(both)), 0, "%s", weir_last_error());
    deliver();
    size_t before = capture_count();
    deliver();
    cr_assert_eq(capture_count(), before + 1);
    cr_assert_str_eq(capture_at(before)->name, "b");
    char back[sizeof both];
    memcpy(back, both, sizeof both);
    memcpy(strstr(back, "\"app\""), "\"bpp\"", 5);
    cr_assert_eq(weir_configure_text(back, strlen(back)), 0, "%s", weir_last_error());
    weir_count(stream, "a", 1);
    deliver();
    expect_total("a", 4);
}

/* They are for the other handlers. */
Test(aggregate, the_policies_of_all_handlers_do_not_apply)
{
    static const char all[] = "{\"handlers\": {\"*\": {\"overflow\": \"drop_oldest\", \"delivery\": \"sync\"}, "
                              "\"capture\": {\"type\": \"capture\", \"aggregate\": \"1h\"}}, "
                              "\"groups\": {\"*\": \"capture\"}}";
    cr_assert_eq(weir_configure_text(all, strlen(all)), 0, "%s", weir_last_error());
    cr_assert_eq(weir_count(stream, "a", 3), 0, "the call does not wait for the interval");
    cr_assert_eq(stats_of("capture").delivered, 0);
    deliver();
    expect_total("a", 3);
}

Test(aggregate, without_the_option_values_are_delivered_again)
{
    weir_count(stream, "a", 1);
    configure(NULL);
    weir_count(stream, "a", 2);
    cr_assert_eq(weir_flush(-1), 0);
    assert_ledger("capture");
    cr_assert_eq(capture_count(), 2);
    cr_assert(capture_at(0)->total && capture_at(0)->value == 1);
    cr_assert(!capture_at(1)->total && capture_at(1)->value == 2);
}

Test(aggregate, another_handler_of_the_group_gets_the_values)
{
    static const char config[] = "{\"handlers\": {\"sums\": {\"type\": \"capture\", \"aggregate\": \"1d\"},"
                                 "\"all\": {\"type\": \"capture\"}}, \"groups\": {\"*\": [\"sums\", \"all\"]}}";
    cr_assert_eq(weir_configure_text(config, strlen(config)), 0, "%s", weir_last_error());
    for (int i = 0; i < 10; i++)
        weir_count(stream, "a", 1);
    cr_assert_eq(weir_flush(-1), 0);
    assert_ledger("sums");
    assert_ledger("all");
    cr_assert(stats_of("sums").delivered == 10 && stats_of("all").delivered == 10);
    cr_assert_eq(capture_count(), 11);
}

/* The calling thread delivers to the file, and no round follows until something else wakes the dispatcher. */
Test(aggregate, values_beside_a_synchronous_handler_are_counted_at_once)
{
    static const char config[] =
        "{\"handlers\": {\"sums\": {\"type\": \"capture\", \"aggregate\": \"1d\"}, \"disk\": {\"type\": "
        "\"file\", "
        "\"path\": \"/dev/shm/weir-test-aggregate-%d\", \"delivery\": \"sync\", \"block_timeout\": \"1h\"}}, "
        "\"groups\": {\"*\": [\"sums\", \"disk\"]}}";
    char text[sizeof config + 20], *path = text;
    snprintf(text, sizeof text, config, (int)getpid());
    cr_assert_eq(weir_configure_text(text, strlen(text)), 0, "%s", weir_last_error());
    for (uint64_t i = 1; i <= 200; i++) {
        cr_assert_eq(weir_count(stream, "a", 1), 0, "%s", weir_last_error());
        cr_assert_eq(stats_of("disk").delivered, i);
        cr_assert_eq(stats_of("sums").summing, i);
    }
    cr_assert_eq(weir_flush(-1), 0, "%s", weir_last_error());
    assert_ledger("sums");
    assert_ledger("disk");
    expect_total("a", 200);
    path = strstr(text, "/dev/shm");
    *strchr(path, '"') = '\0';
    unlink(path);
}

/* ---- A handler type that takes summaries ------------------------------------------------------ */

static const weir_host *reader;
static weir_summary seen[8];
static double seen_p90[8];
static uint64_t seen_buckets[8][3];
static int seen_count;

static void *create_reader(const weir_host *host, const void *options)
{
    (void)options;
    reader = host;
    return &reader;
}

static void read_batch(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)outcome;
    const weir_summaries *summaries = reader->service(reader, WEIR_SERVICE_SUMMARIES);
    for (uint32_t i = 0; i < batch->count && seen_count < 8; i++, seen_count++) {
        seen[seen_count].size = sizeof *seen;
        if (!summaries->read(reader, batch, &batch->samples[i], &seen[seen_count]))
            abort();
        seen_p90[seen_count] = summaries->quantile(reader, 0.9);
        for (size_t j = 0; j < seen[seen_count].bucket_count && j < 3; j++)
            seen_buckets[seen_count][j] = seen[seen_count].total_buckets[j];
    }
}

static void destroy_reader(void *self)
{
    (void)self;
}

static const weir_handler_type reader_type = {
    .size = sizeof reader_type,
    .abi = WEIR_ABI,
    .kinds = WEIR_KINDS_DOUBLE | WEIR_KINDS_INT | WEIR_KINDS_SUMMARY,
    .name = "reader",
    .summary = "reads summaries, for tests",
    .create = create_reader,
    .emit = read_batch,
    .destroy = destroy_reader,
};

Test(aggregate, a_type_that_names_the_kind_gets_the_summaries)
{
    static const double bounds[] = {10, 90};
    cr_assert_eq(weir_register_handler_type(&reader_type, NULL), 0, "%s", weir_last_error());
    cr_assert_eq(weir_configure("*", "reader", "{\"aggregate\": \"1d\"}"), 0, "%s", weir_last_error());
    weir_metric *size = weir_get_histogram(stream, "size", bounds, 2),
                *count = weir_get_counter(stream, "count");
    for (int i = 1; i <= 100; i++) {
        weir_metric_add(size, i);
        weir_metric_add(count, 2);
    }
    cr_assert_eq(weir_flush(-1), 0, "%s", weir_last_error());
    assert_ledger("reader");
    cr_assert_eq(stats_of("reader").delivered, 200);
    cr_assert_eq(seen_count, 2);
    const weir_summary *size_summary = &seen[seen[1].instrument == WEIR_HISTOGRAM];
    const weir_summary *count_summary = &seen[seen[1].instrument == WEIR_COUNTER];
    cr_assert(size_summary->count == 100 && size_summary->sum == 5050 && size_summary->min == 1 &&
              size_summary->max == 100);
    cr_assert(count_summary->total_sum == 200 && count_summary->total_count == 100 &&
              count_summary->instrument == WEIR_COUNTER);
    cr_assert_leq(fabs(seen_p90[size_summary - seen] - 90), 0.9);
    cr_assert(isnan(seen_p90[count_summary - seen]));
    const uint64_t *buckets = seen_buckets[size_summary - seen];
    cr_assert(size_summary->bucket_count == 3 && buckets[0] == 10 && buckets[1] == 80 && buckets[2] == 10);
    cr_assert_leq(size_summary->since_ns, size_summary->start_ns);
}

/* ---- Shutting down --------------------------------------------------------------------------- */

/* The handlers get their first values when the dispatcher's thread has ended: what starts their threads is the
 * last round, which starts some of them only. */
Test(aggregate, the_last_interval_reaches_all_of_many_handlers, .timeout = 60)
{
    enum { HANDLERS = 40 };
    static char config[HANDLERS * 100] = "{\"handlers\": {\"*\": {\"aggregate\": \"1h\"}",
                                  routes[HANDLERS * 20];
    for (int i = 0; i < HANDLERS; i++) {
        snprintf(config + strlen(config), 100, ", \"h%d\": {\"type\": \"capture\"}", i);
        snprintf(routes + strlen(routes), 20, "%s\"h%d\"", i ? ", " : "", i);
    }
    strcat(config, "}, \"groups\": {\"*\": [");
    strcat(strcat(config, routes), "]}}");
    cr_assert_eq(weir_configure_text(config, strlen(config)), 0, "%s", weir_last_error());
    weir_metric_add(weir_get_gauge(stream, "level"), 1);
    cr_assert_eq(weir_shutdown(-1), 0, "%s", weir_last_error());
    cr_assert_eq(capture_count(), HANDLERS);
    for (int i = 0; i < HANDLERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "h%d", i);
        assert_ledger(name);
    }
}

/* ---- A handler that drops -------------------------------------------------------------------- */

static int dropper_calls;

static void *dropper_create(const weir_host *host, const void *options)
{
    (void)options;
    return (void *)(uintptr_t)host;
}

static void dropper_close(void *self)
{
    (void)self;
}

/* Rejects the first part of the first summary, whose rest it then gets by itself, and drops. */
static void dropper_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    outcome->done = batch->count;
    if (dropper_calls == 0)
        outcome->done = outcome->rejected = 1;
    if (dropper_calls == 1) {
        outcome->done = 0;
        outcome->code = WEIR_OUTCOME_DROP;
    }
    dropper_calls++;
}

Test(aggregate, what_a_handler_drops_is_what_it_was_given)
{
    static const weir_handler_type type = {.size = sizeof type,
                                           .abi = WEIR_ABI,
                                           .name = "dropper",
                                           .summary = "drops",
                                           .create = dropper_create,
                                           .emit = dropper_emit,
                                           .destroy = dropper_close};
    cr_assert_eq(weir_register_handler_type(&type, NULL), 0);
    cr_assert_eq(weir_configure("*", "dropper", "{\"aggregate\": \"1d\"}"), 0, "%s", weir_last_error());
    for (int i = 0; i < 6; i++)
        weir_add_value(stream, (const char *[]){"x", "y", "z"}[i % 3], i);
    cr_assert_eq(weir_flush(-1), WEIR_ERR_DROPPED);
    assert_ledger("dropper");
    cr_assert_eq(stats_of("dropper").dropped[WEIR_DROPPED_REJECTED], 2);
    cr_assert_eq(stats_of("dropper").delivered, 4);
    cr_assert_geq(dropper_calls, 3);
}
