/* The life of a series in summaries: which handlers have its total from when on, and its end. The interval is a
 * day, and a flush ends it early, so no test depends on the time. */

#include <criterion/criterion.h>
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

#define HANDLERS                                                                                               \
    "{\"handlers\": {\"a\": {\"type\": \"capture\", \"aggregate\": \"1d\"}, "                                  \
    "\"b\": {\"type\": \"capture\", \"aggregate\": \"1d\"}}, "

static weir_stream *stream;

/* rest: what follows the handlers a and b. */
static void configure(const char *rest)
{
    char text[1024];
    snprintf(text, sizeof text, HANDLERS "%s}", rest);
    cr_assert_eq(weir_configure_text(text, strlen(text)), 0, "%s", weir_last_error());
}

static void set_up(void)
{
    await_day();
    capture_register();
    configure("\"groups\": {\"*\": \"a\"}");
    stream = weir_get_stream("app");
}

TestSuite(totals, .init = set_up);

static void deliver(void)
{
    cr_assert_eq(weir_flush(-1), 0, "%s", weir_last_error());
    assert_ledger("a");
}

/* The last sample of a name and labels that a handler has; NULL: none. */
static const struct captured *find(const char *handler, const char *name, const char *labels)
{
    for (size_t i = capture_count(); i-- > 0;) {
        const struct captured *sample = capture_at(i);
        if (strcmp(sample->handler, handler) == 0 && strcmp(sample->name, name) == 0 &&
            strcmp(sample->labels, labels) == 0)
            return sample;
    }
    return NULL;
}

static void expect(const char *handler, const char *name, double value)
{
    const struct captured *sample = find(handler, name, "");
    cr_assert(sample, "%s has no %s", handler, name);
    cr_assert_eq(sample->value, value, "%s of %s is %g", name, handler, sample->value);
}

static weir_metric *labeled(const char *name, const char *value)
{
    return weir_get_metric(weir_get_stream_labeled("app", &(weir_label){"id", value}, 1), name);
}

static uint64_t series_in_use(void)
{
    weir_stats stats;
    cr_assert_eq(weir_get_stats(&stats, sizeof stats), 0);
    return stats.series;
}

/* ---- Handlers that come later ---------------------------------------------------------------- */

Test(totals, a_handler_that_is_added_goes_on_with_the_totals_of_others)
{
    static const double bounds[] = {5, 10};
    weir_metric *took = weir_get_histogram(stream, "took", bounds, 2);
    weir_count(stream, "requests", 1000);
    weir_metric_add(took, 3);
    weir_metric_add(took, 7);
    deliver();
    weir_count(stream, "requests", 10); /* in the interval that is open */
    configure("\"groups\": {\"*\": [\"a\", \"b\"]}");
    weir_count(stream, "requests", 1);
    weir_metric_add(took, 70);
    deliver();
    assert_ledger("b");
    expect("a", "requests", 1011);
    expect("b", "requests", 1011);
    expect("b", "took.count", 3);
    expect("b", "took.sum", 80);
    cr_assert_eq(find("b", "took.bucket", "le=5")->value, 1);
    cr_assert_eq(find("b", "took.bucket", "le=10")->value, 2);
    cr_assert_eq(find("b", "took.bucket", "le=+Inf")->value, 3);
    expect("b", "took.min", 70); /* of its own interval */
}

Test(totals, a_handler_that_returns_has_what_came_meanwhile)
{
    weir_count(stream, "requests", 1000);
    deliver();
    configure("\"groups\": {\"*\": [\"a\", \"b\"]}");
    weir_count(stream, "requests", 1);
    deliver();
    configure("\"groups\": {\"*\": [\"b\"]}");
    weir_count(stream, "requests", 10);
    cr_assert_eq(weir_flush(-1), 0);
    expect("b", "requests", 1011);
    configure("\"groups\": {\"*\": [\"a\", \"b\"]}");
    weir_count(stream, "requests", 100);
    deliver();
    expect("a", "requests", 1111);
    expect("b", "requests", 1111);
}

/* With the one that begins anew, as another handler had it meanwhile. */
Test(totals, a_handler_that_returns_does_not_go_on_with_what_has_ended)
{
    weir_metric *requests = weir_get_counter(stream, "requests"), *gone = weir_get_counter(stream, "gone");
    configure("\"groups\": {\"*\": [\"a\", \"b\"]}");
    weir_metric_add(requests, 1000);
    weir_metric_add(gone, 1000);
    deliver();
    configure("\"groups\": {\"*\": \"a\"}");
    cr_assert_eq(weir_metric_remove(requests), 0, "%s", weir_last_error());
    cr_assert_eq(weir_metric_remove(gone), 0, "%s", weir_last_error());
    deliver();
    weir_metric_add(requests, 5);
    deliver();
    expect("a", "requests", 5);
    size_t count = capture_count();
    configure("\"groups\": {\"*\": [\"a\", \"b\"]}");
    weir_metric_add(requests, 1);
    deliver();
    expect("a", "requests", 6);
    expect("b", "requests", 6);
    for (; count < capture_count(); count++)
        cr_assert_str_neq(capture_at(count)->name, "gone");
    weir_metric_add(gone, 1);
    deliver();
    assert_ledger("b");
    expect("a", "gone", 1);
    expect("b", "gone", 1);
}

Test(totals, a_group_that_is_routed_to_another_handler_takes_its_totals_along)
{
    weir_count(stream, "requests", 1000);
    weir_count(weir_get_stream("other"), "requests", 7);
    configure("\"groups\": {\"*\": \"a\", \"app\": \"b\"}");
    cr_assert_eq(weir_flush(-1), 0);
    expect("b", "requests", 1000);
    cr_assert_str_eq(find("b", "requests", "")->group, "app");
    weir_count(stream, "requests", 1);
    cr_assert_eq(weir_flush(-1), 0);
    expect("b", "requests", 1001);
    assert_ledger("b");
}

Test(totals, so_it_does_with_a_journal)
{
    char folder[] = "/tmp/weir-totals.XXXXXX", text[256];
    cr_assert(mkdtemp(folder));
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "\"settings\": {\"journal\": \"%s/journal\"}, \"groups\": {\"*\": \"%c\"}",
                 folder, "aba"[i]);
        configure(text);
        weir_count(stream, "requests", i + 1);
        cr_assert_eq(weir_flush(-1), 0);
        expect((const char *[]){"a", "b", "a"}[i], "requests", (const double[]){1, 3, 6}[i]);
    }
    cr_assert_eq(weir_shutdown(-1), 0);
    snprintf(text, sizeof text, "%s/journal", folder);
    rmdir(text);
    cr_assert_eq(rmdir(folder), 0, "the journal was not deleted");
}

/* What an object leaves out would be in the total of one handler, and not in that of the other. */
Test(totals, a_handler_with_an_object_in_its_route_begins_at_0)
{
    weir_count(stream, "requests", 1000);
    deliver();
    configure("\"groups\": {\"*\": [\"a\", {\"to\": \"b\", \"only\": [\"requests\"]}]}");
    weir_count(stream, "requests", 1);
    deliver();
    expect("a", "requests", 1001);
    expect("b", "requests", 1);
}

Test(totals, a_counter_is_0_as_soon_as_it_is_declared_though_its_handle_is_older)
{
    weir_get_metric(stream, "errors");
    weir_add_value(stream, "other", 1);
    deliver();
    const weir_metric_spec spec = {.size = sizeof spec, .instrument = WEIR_COUNTER};
    cr_assert_eq(weir_declare(stream, "errors", &spec), 0);
    deliver();
    expect("a", "errors", 0);
}

/* ---- The end of a series --------------------------------------------------------------------- */

Test(totals, a_series_that_is_removed_has_a_last_summary_and_begins_anew)
{
    weir_metric *requests = weir_get_counter(stream, "requests");
    weir_metric_add(requests, 5);
    deliver();
    cr_assert_not(find("a", "requests", "")->ended);
    weir_metric_add(requests, 1);
    cr_assert_eq(weir_metric_remove(requests), 0, "%s", weir_last_error());
    deliver();
    expect("a", "requests", 6);
    cr_assert(find("a", "requests", "")->ended);
    size_t before = capture_count();
    deliver();
    configure("\"groups\": {\"*\": [\"a\", \"b\"]}"); /* the declaration does not bring it back */
    deliver();
    cr_assert_eq(capture_count(), before);
    weir_metric_add(requests, 2);
    deliver();
    expect("a", "requests", 2);
    expect("b", "requests", 2);
    cr_assert_not(find("a", "requests", "")->ended);
}

Test(totals, what_is_added_after_the_removal_belongs_to_the_new_series)
{
    static const double bounds[] = {5};
    weir_metric *requests = weir_get_counter(stream, "requests"), *level = weir_get_gauge(stream, "level"),
                *took = weir_get_histogram(stream, "took", bounds, 1);
    weir_metric_add(requests, 100);
    weir_metric_add(took, 1);
    weir_metric_add(level, 3);
    cr_assert_eq(weir_metric_remove(requests), 0);
    cr_assert_eq(weir_metric_remove(took), 0);
    cr_assert_eq(weir_metric_remove(level), 0);
    weir_metric_add(requests, 7);
    weir_metric_add(took, 9);
    weir_metric_add(level, 4);
    deliver();
    expect("a", "requests", 7);
    cr_assert_not(find("a", "requests", "")->ended);
    expect("a", "level", 4);
    expect("a", "took.count", 1);
    cr_assert_eq(find("a", "took.bucket", "le=5")->value, 0);
    deliver();
    expect("a", "requests", 7);
    expect("a", "level", 4);
}

Test(totals, a_gauge_that_is_removed_is_gone_until_it_is_set)
{
    weir_metric *level = weir_get_gauge(stream, "level");
    weir_metric_add(level, 3);
    deliver();
    cr_assert_eq(weir_metric_remove(level), 0);
    deliver();
    cr_assert(find("a", "level", "")->ended);
    size_t before = capture_count();
    deliver();
    cr_assert_eq(capture_count(), before);
    weir_metric_change(level, 2);
    deliver();
    expect("a", "level", 5);
}

/* More of them than max_series_per_name and max_series allow, but only one at a time. */
Test(totals, label_sets_that_were_removed_make_room_for_others)
{
    char value[16];
    uint64_t before = 0;
    configure("\"settings\": {\"max_series\": 50, \"max_series_per_name\": 10}, \"groups\": {\"*\": \"a\"}, "
              "\"metrics\": {\"app\": {\"n\": \"counter\", \"m\": \"counter\"}}");
    for (int i = 0; i < 1000; i++) {
        snprintf(value, sizeof value, "%d", i);
        weir_metric *n = labeled("n", value), *m = labeled("m", value);
        cr_assert_eq(weir_metric_add(n, 1) + weir_metric_add(m, 1), 0);
        cr_assert_eq(weir_metric_remove(n) + weir_metric_remove(m), 0, "%s", weir_last_error());
        before = i == 0 ? series_in_use() : before;
    }
    cr_assert_eq(series_in_use(), before);
    deliver();
    cr_assert_eq(find("a", "n", "id=999")->value, 1);
    cr_assert_not(find("a", "n", "weir_overflow=true"));
    cr_assert_not(find("a", "weir_overflow.count", ""));
}

Test(totals, a_label_set_that_returns_takes_its_places_again)
{
    weir_metric *n = labeled("n", "1");
    weir_metric_add(n, 1);
    uint64_t before = series_in_use();
    cr_assert_eq(weir_metric_remove(n), 0);
    cr_assert_eq(weir_metric_remove(n), 0, "nothing to do");
    cr_assert_eq(series_in_use(), before - 2, "the series and its label set");
    weir_metric_add(n, 1);
    deliver();
    cr_assert_eq(series_in_use(), before);
}

/* ---- Streams that are removed ---------------------------------------------------------------- */

static weir_stream *make_set(int number)
{
    char value[16];
    snprintf(value, sizeof value, "%d", number);
    weir_stream *set = weir_get_stream_labeled("app", &(weir_label){"id", value}, 1);
    cr_assert_eq(weir_metric_add(weir_get_counter(set, "n"), number), 0);
    cr_assert_eq(weir_metric_change(weir_get_gauge(set, "m"), number), 0);
    return set;
}

/* Until one is the stream of an earlier label set. */
Test(totals, a_stream_that_was_removed_is_given_to_another_label_set, .timeout = 300)
{
    enum { MOST = 100000, EACH = 100 };
    static weir_stream *sets[MOST];
    char labels[24];
    bool is_reused = false;
    int count = 0;
    for (; !is_reused && count < MOST; count++) {
        weir_stream *set = sets[count] = make_set(count);
        for (int i = 0; i < count; i++)
            is_reused |= sets[i] == set;
        cr_assert_eq(weir_stream_remove(set), 0, "%s", weir_last_error());
        if (count % EACH == EACH - 1)
            deliver();
    }
    cr_assert(is_reused);
    deliver();
    for (int i = 0; i < count; i++) {
        snprintf(labels, sizeof labels, "id=%d", i);
        const struct captured *n = find("a", "n", labels), *m = find("a", "m", labels);
        cr_assert(n && n->ended && n->value == i, "%s", labels);
        cr_assert(m && m->ended && m->value == i, "%s", labels);
    }
}

Test(totals, a_stream_that_was_removed_begins_anew)
{
    cr_assert_eq(weir_stream_remove(make_set(5)), 0); /* the names stay */
    uint64_t before = series_in_use();
    weir_stream *set = make_set(5);
    cr_assert_eq(series_in_use(), before + 3);
    cr_assert_eq(weir_stream_remove(set), 0);
    cr_assert_eq(series_in_use(), before);
    make_set(5);
    deliver();
    cr_assert_eq(find("a", "n", "id=5")->value, 5);
}

Test(totals, streams_without_labels_and_shared_ones_are_not_removed)
{
    configure("\"settings\": {\"max_series\": 3}, \"groups\": {\"*\": \"a\"}");
    cr_assert_eq(weir_stream_remove(stream), WEIR_ERR_ARGUMENT);
    cr_assert_str_eq(weir_last_error(), "weir_stream_remove: the stream has no labels");
    cr_assert_eq(weir_stream_remove(NULL), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_stream_remove(weir_get_stream("")), WEIR_ERR_NAME);
    for (int i = 0; i < 5; i++)
        weir_add_value(stream, (const char *[]){"a", "b", "c", "d", "e"}[i], 1);
    const weir_label label = {"id", "5"};
    cr_assert_eq(weir_stream_remove(weir_get_stream_labeled("app", &label, 1)), WEIR_ERR_LIMIT);
    cr_assert(strstr(weir_last_error(), "shared"), "%s", weir_last_error());
    deliver();
}

/* ---- Expiry ---------------------------------------------------------------------------------- */

/* Shorter than any interval: what has no value in one expires when that ends. */
#define EXPIRY "\"settings\": {\"expiry\": \"1ns\", \"max_series\": 50, \"max_series_per_name\": 10}, "

Test(totals, label_sets_gauges_and_plain_values_expire)
{
    configure(EXPIRY "\"groups\": {\"*\": \"a\"}, \"metrics\": {\"app\": {\"n\": \"counter\"}}");
    weir_metric *requests = weir_get_counter(stream, "requests"), *level = weir_get_gauge(stream, "level");
    weir_metric *n = labeled("n", "1");
    weir_metric_add(requests, 2);
    weir_metric_add(level, 3);
    weir_metric_add(n, 4);
    weir_add_value(stream, "plain", 5);
    deliver();
    cr_assert_not(find("a", "n", "id=1")->ended);
    uint64_t before = series_in_use();
    deliver(); /* expired at its end */
    cr_assert_eq(series_in_use(), before - 2, "the series with labels and its label set");
    deliver();
    cr_assert(find("a", "n", "id=1")->ended);
    cr_assert_eq(find("a", "n", "id=1")->value, 4);
    cr_assert(find("a", "level", "")->ended);
    size_t count = capture_count();
    deliver();
    cr_assert_eq(capture_count(), count + 1, "the counter without labels");
    expect("a", "requests", 2);
    cr_assert_not(find("a", "requests", "")->ended);
}

Test(totals, what_has_expired_begins_anew)
{
    configure(EXPIRY "\"groups\": {\"*\": \"a\"}, \"metrics\": {\"app\": {\"n\": \"counter\"}}");
    weir_metric *n = labeled("n", "1"), *level = weir_get_gauge(stream, "level");
    for (int i = 0; i < 3; i++) {
        weir_metric_add(n, 10);
        weir_metric_add(level, 20);
        deliver();
        cr_assert_eq(find("a", "n", "id=1")->value, 10, "%g", find("a", "n", "id=1")->value);
        cr_assert_eq(find("a", "level", "")->value, 20);
        deliver();
        deliver();
        cr_assert(find("a", "n", "id=1")->ended);
    }
    weir_metric_add(n, 1);
    deliver();
    weir_metric_add(n, 1); /* used in each interval */
    deliver();
    cr_assert_eq(find("a", "n", "id=1")->value, 2);
}

Test(totals, running_totals_expire)
{
    const weir_sample_spec total = {
        .size = sizeof total, .name = "total", .kind = WEIR_KIND_DOUBLE, .value = 7, .cumulative = true};
    configure(EXPIRY "\"groups\": {\"*\": \"a\"}");
    cr_assert_eq(weir_add(stream, &total), 0, "%s", weir_last_error());
    deliver();
    expect("a", "total", 7);
    deliver();
    deliver();
    cr_assert(find("a", "total", "")->ended);
    cr_assert_eq(find("a", "total", "")->value, 7);
}

Test(totals, what_an_object_in_a_route_makes_does_not_expire)
{
    configure(EXPIRY "\"groups\": {\"*\": {\"to\": \"a\", \"labels\": {\"site\": \"x\"}}}");
    weir_count(stream, "requests", 2);
    deliver();
    deliver();
    deliver();
    cr_assert_not(find("a", "requests", "site=x")->ended);
    weir_count(stream, "requests", 1);
    deliver();
    cr_assert_eq(find("a", "requests", "site=x")->value, 3);
}

Test(totals, label_sets_that_expire_make_room_for_others)
{
    char value[16];
    configure(EXPIRY "\"groups\": {\"*\": \"a\"}");
    for (int i = 0; i < 200; i++) {
        snprintf(value, sizeof value, "%d", i);
        cr_assert_eq(weir_metric_add(labeled("n", value), 1), 0);
        deliver();
    }
    cr_assert(find("a", "n.count", "id=199"));
    cr_assert_not(find("a", "n.count", "weir_overflow=true"));
}

Test(totals, without_expiry_nothing_ends)
{
    weir_metric_add(labeled("n", "1"), 1);
    weir_metric_add(weir_get_gauge(stream, "level"), 1);
    uint64_t before = series_in_use();
    for (int i = 0; i < 100; i++)
        deliver();
    cr_assert_eq(series_in_use(), before);
    cr_assert_not(find("a", "level", "")->ended);
}

/* ---- Shared series, and threads -------------------------------------------------------------- */

Test(totals, what_is_shared_cannot_be_removed)
{
    configure("\"settings\": {\"max_series_per_name\": 1}, \"groups\": {\"*\": \"a\"}");
    weir_metric_add(labeled("n", "1"), 1);
    weir_metric *shared = labeled("n", "2");
    weir_metric_add(shared, 1);
    cr_assert_eq(weir_metric_remove(shared), WEIR_ERR_LIMIT);
    cr_assert(strstr(weir_last_error(), "\"n\" is shared"), "%s", weir_last_error());
    cr_assert_eq(weir_metric_remove(NULL), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_metric_remove(weir_get_metric(stream, "")), WEIR_ERR_NAME);
    deliver();
}

enum { THREADS = 4, ROUNDS = 2000, SETS = 20 };

static void *add_and_remove(void *seed)
{
    unsigned state = *(unsigned *)seed;
    for (int i = 0; i < ROUNDS; i++) {
        char value[16];
        state = state * 1664525u + 1013904223u;
        snprintf(value, sizeof value, "%u", state >> 16 & (SETS - 1));
        weir_metric *n = labeled("n", value);
        if (weir_metric_add(n, 1) || (i % 4 == 0 && weir_metric_remove(n)))
            return "refused";
    }
    return NULL;
}

static void run_threads(void *(*run)(void *seed), const char *handler)
{
    unsigned seeds[THREADS] = {1, 2, 3, 4};
    pthread_t threads[THREADS];
    weir_handler_stats stats;
    void *failed[THREADS];
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, run, &seeds[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], &failed[i]);
    for (int i = 0; i < THREADS; i++)
        cr_assert_null(failed[i]);
    deliver();
    assert_ledger(handler);
    cr_assert_eq(weir_get_handler_stats(handler, &stats, sizeof stats), 0);
    cr_assert_eq(stats.delivered, THREADS * ROUNDS);
}

Test(totals, no_value_is_lost_while_threads_remove_what_others_add_to, .timeout = 300)
{
    configure("\"groups\": {\"*\": [\"a\", \"b\"]}, \"metrics\": {\"app\": {\"n\": \"counter\"}}");
    run_threads(add_and_remove, "b");
}

/* A histogram that the calls sum. */
Test(totals, no_measurement_is_lost_while_threads_remove_what_others_add_to, .timeout = 300)
{
    static const char text[] =
        "{\"handlers\": {\"*\": {\"aggregate\": \"1d\", \"percentiles\": []}, \"a\": {\"type\": \"capture\"}, "
        "\"b\": {\"type\": \"capture\"}}, \"groups\": {\"*\": [\"a\", \"b\"]}, "
        "\"metrics\": {\"app\": {\"n\": \"histogram\"}}}";
    cr_assert_eq(weir_configure_text(text, strlen(text)), 0, "%s", weir_last_error());
    run_threads(add_and_remove, "b");
}

static void *add_and_flush(void *seed)
{
    unsigned state = *(unsigned *)seed;
    for (int i = 0; i < ROUNDS; i++) {
        char value[16];
        state = state * 1664525u + 1013904223u;
        snprintf(value, sizeof value, "%u", state >> 16 & (SETS - 1));
        if (weir_metric_add(labeled("n", value), 1) || (i % 16 == 0 && weir_flush(-1)))
            return "refused";
    }
    return NULL;
}

Test(totals, no_value_is_lost_while_series_expire_that_threads_add_to, .timeout = 300)
{
    configure("\"settings\": {\"expiry\": \"1ns\"}, \"groups\": {\"*\": \"a\"}, "
              "\"metrics\": {\"app\": {\"n\": \"counter\"}}");
    run_threads(add_and_flush, "a");
}
