/* Instruments, labels of a call, typed events and measured durations, as handlers receive them. */

#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "api_capture.h"
#include "api_ledger.h"

static weir_stream *stream;

static void set_up(void)
{
    capture_register();
    cr_assert_eq(weir_configure("*", "capture", NULL), 0, "%s", weir_last_error());
    stream = weir_get_stream("app");
}

static void deliver(size_t expected)
{
    cr_assert_eq(weir_flush(-1), 0, "%s", weir_last_error());
    cr_assert_eq(capture_count(), expected);
    assert_ledger("capture");
}

static uint64_t refused(void)
{
    weir_stats stats;
    cr_assert_eq(weir_get_stats(&stats, sizeof stats), 0);
    return stats.refused[WEIR_REFUSED_ARGUMENT];
}

TestSuite(instruments, .init = set_up);

Test(instruments, handlers_see_what_a_name_means)
{
    static const double bounds[] = {1, 10};
    weir_metric_add(weir_get_counter(stream, "a"), 1);
    weir_metric_add(weir_get_gauge(stream, "b"), 1);
    weir_metric_add(weir_get_histogram(stream, "c", bounds, 2), 1);
    weir_add_value(stream, "d", 1);
    weir_count(stream, "e", 1);
    deliver(5);
    static const int wanted[] = {WEIR_COUNTER, WEIR_GAUGE, WEIR_HISTOGRAM, WEIR_VALUE, WEIR_COUNTER};
    for (size_t i = 0; i < 5; i++)
        cr_assert_eq(capture_at(i)->instrument, wanted[i]);
}

Test(instruments, values_that_an_instrument_does_not_allow_are_refused_and_counted)
{
    weir_metric *counter = weir_get_counter(stream, "a"), *histogram = weir_get_histogram(stream, "b", NULL, 0);
    cr_assert_eq(weir_metric_add(counter, -0.5), WEIR_ERR_ARGUMENT);
    cr_assert_str_eq(
        weir_last_error(),
        "name \"a\": -0.5 is not a value of a counter, whose increments are at least 0 and at most 4e304");
    cr_assert_eq(weir_metric_add_int(counter, -1), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_count(stream, "a", NAN), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_add_value(stream, "a", INFINITY), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_metric_add(histogram, NAN), WEIR_ERR_ARGUMENT);
    cr_assert_eq(WEIR_EMIT(stream, {"x", 1}, {"a", -1}), WEIR_ERR_ARGUMENT);
    cr_assert_eq(WEIR_EMIT_TYPED(stream, {"x", WEIR_INT(1)}, {"a", WEIR_INT(-1)}), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_metric_change(counter, 1), WEIR_ERR_ARGUMENT);
    cr_assert_eq(refused(), 10, "an event is refused as a whole");
    cr_assert_eq(weir_metric_add(counter, 0), 0);
    cr_assert_eq(weir_metric_add(histogram, -3), 0);
    deliver(2);
}

Test(instruments, totals_of_a_counter_may_have_any_value)
{
    weir_get_counter(stream, "a");
    weir_sample_spec spec = {.size = sizeof spec, .name = "a", .value = -1, .cumulative = true};
    cr_assert_eq(weir_add(stream, &spec), 0);
    spec.cumulative = false;
    cr_assert_eq(weir_add(stream, &spec), WEIR_ERR_ARGUMENT);
    deliver(1);
}

Test(instruments, a_handle_of_another_declaration_refuses)
{
    weir_metric *gauge = weir_get_gauge(stream, "a");
    cr_assert_eq(weir_metric_add(weir_get_counter(stream, "a"), 1), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_count(stream, "a", 1), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_metric_add(gauge, -1), 0);
    deliver(1);
}

Test(instruments, beyond_the_limit_of_series_counting_does_not_bind_the_shared_series)
{
    static const char config[] = "{\"settings\": {\"max_series\": 2}, \"groups\": {\"*\": \"capture\"}}";
    cr_assert_eq(weir_configure_text(config, strlen(config)), 0, "%s", weir_last_error());
    cr_assert_eq(weir_add_value(stream, "known", 1), 0);
    cr_assert_eq(weir_count(stream, "new_requests", 1), 0);
    cr_assert_eq(weir_count(stream, "new_requests", 1), 0);
    cr_assert_eq(weir_add_value(stream, "new_temp", -3), 0, "%s", weir_last_error());
    deliver(4);
    for (size_t i = 1; i < 4; i++) {
        cr_assert_str_eq(capture_at(i)->name, "weir_overflow");
        cr_assert_eq(capture_at(i)->instrument, WEIR_VALUE);
    }
}

Test(instruments, a_value_that_is_refused_does_not_move_a_gauge)
{
    weir_metric *gauge = weir_get_gauge(stream, "level");
    weir_get_counter(stream, "requests");
    cr_assert_eq(WEIR_EMIT(stream, {"level", 5}, {"requests", -1}), WEIR_ERR_ARGUMENT);
    cr_assert_eq(WEIR_EMIT_TYPED(stream, {"requests", WEIR_INT(-1)}, {"level", WEIR_INT(6)}),
                 WEIR_ERR_ARGUMENT);
    cr_assert_eq(WEIR_EMIT_TYPED(stream, {"level", WEIR_INT(7)}, {"requests", WEIR_INT(-1)}),
                 WEIR_ERR_ARGUMENT);
    weir_sample_spec spec = {.size = sizeof spec, .name = "level", .value = 8, .metadata = "\xff"};
    cr_assert_eq(weir_add(stream, &spec), WEIR_ERR_NAME);
    cr_assert_eq(weir_metric_change(gauge, 1), 0);
    cr_assert_eq(WEIR_EMIT(stream, {"level", 5}, {"requests", 1}), 0);
    cr_assert_eq(weir_metric_change(gauge, 1), 0);
    cr_assert_eq(WEIR_EMIT_TYPED(stream, {"level", WEIR_INT(7)}, {"requests", WEIR_INT(1)}), 0);
    cr_assert_eq(weir_metric_change(gauge, 1), 0);
    deliver(7);
    cr_assert_eq(capture_at(0)->value, 1);
    cr_assert_eq(capture_at(3)->value, 6);
    cr_assert_eq(capture_at(6)->value, 8);
}

Test(instruments, a_change_that_would_make_a_level_infinite_is_refused)
{
    weir_metric *gauge = weir_get_gauge(stream, "level");
    cr_assert_eq(weir_metric_change(gauge, INFINITY), WEIR_ERR_ARGUMENT);
    cr_assert_str_eq(weir_last_error(),
                     "weir_metric_change: the level of the gauge would not be a finite number");
    cr_assert_eq(weir_metric_change(gauge, NAN), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_metric_change(gauge, 1), 0);
    deliver(1);
    cr_assert_eq(capture_at(0)->value, 1);
    cr_assert_eq(refused(), 2);
}

static void *change(void *gauge)
{
    for (int i = 0; i < 10000; i++)
        cr_assert_eq(weir_metric_change(gauge, i % 2 ? -1 : 2), 0);
    return NULL;
}

Test(instruments, concurrent_changes_of_a_gauge_all_count)
{
    pthread_t threads[4];
    weir_metric *gauge = weir_get_gauge(stream, "a");
    weir_metric_add(gauge, 100);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, change, gauge), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(weir_flush(-1), 0, "the order of rings is not that of calls");
    weir_metric_change(gauge, 0);
    deliver(40002);
    cr_assert_eq(capture_at(40001)->value, 100 + 4 * 5000);
}

Test(instruments, a_configuration_takes_precedence_over_the_program)
{
    static const char config[] =
        "{\"groups\": {\"*\": \"capture\"}, \"metrics\": {\"app\": {"
        "\"a\": \"gauge\", \"*.n\": {\"instrument\": \"counter\", \"unit\": \"rows\"}}}}";
    cr_assert_eq(weir_configure_text(config, strlen(config)), 0, "%s", weir_last_error());
    cr_assert_eq(weir_metric_add(weir_get_counter(stream, "a"), -1), 0);
    cr_assert_eq(weir_add_value(stream, "db.n", -1), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_add_value(stream, "db.n", 1), 0);
    deliver(2);
    cr_assert_eq(capture_at(0)->instrument, WEIR_GAUGE);
    cr_assert_eq(capture_at(1)->instrument, WEIR_COUNTER);
    cr_assert_str_eq(capture_at(1)->unit, "rows");
    cr_assert_eq(weir_configure("*", "capture", NULL), 0);
    cr_assert_eq(weir_add_value(stream, "db.n", -1), WEIR_ERR_ARGUMENT,
                 "an edited configuration keeps its rules");
    static const char plain[] = "{\"groups\": {\"*\": \"capture\"}}";
    cr_assert_eq(weir_configure_text(plain, strlen(plain)), 0);
    cr_assert_eq(weir_add_value(stream, "db.n", -1), 0, "without the rule any value is one");
    deliver(3);
}

/* ---- Labels of a call ------------------------------------------------------------------------ */

Test(instruments, labels_of_a_call_join_those_of_the_stream_in_any_order)
{
    const weir_label fixed = {"host", "h"}, labels[] = {{"status", "200"}, {"route", "/x"}};
    const weir_label sorted[] = {{"route", "/x"}, {"status", "200"}};
    weir_stream *labeled = weir_get_stream_labeled("app", &fixed, 1);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(weir_add_value_labeled(labeled, "n", i, labels, 2), 0);
        cr_assert_eq(weir_add_value_labeled(labeled, "n", i, sorted, 2), 0);
    }
    cr_assert_eq(weir_add_value_labeled(labeled, "n", 3, NULL, 0), 0);
    deliver(7);
    for (size_t i = 0; i < 6; i++)
        cr_assert_str_eq(capture_at(i)->labels, capture_at(0)->labels);
    cr_assert(strstr(capture_at(0)->labels, "/x") && strstr(capture_at(0)->labels, "200"));
    cr_assert(!strstr(capture_at(6)->labels, "/x"));
    weir_stats stats;
    weir_get_stats(&stats, sizeof stats);
    cr_assert_eq(stats.series, 1 + 2 + 2, "a group, two label sets, two series");
}

Test(instruments, bad_labels_of_a_call_are_refused)
{
    const weir_label fixed = {"host", "h"}, twice[] = {{"a", "1"}, {"a", "2"}}, bad = {"", "1"},
                     none = {"a", NULL};
    weir_stream *labeled = weir_get_stream_labeled("app", &fixed, 1);
    cr_assert_eq(weir_add_value_labeled(stream, "n", 1, twice, 2), WEIR_ERR_NAME);
    cr_assert_str_eq(weir_last_error(), "label key \"a\": given twice; keys must be unique");
    cr_assert_eq(weir_add_value_labeled(labeled, "n", 1, &fixed, 1), WEIR_ERR_NAME, "the stream has it too");
    cr_assert_eq(weir_add_value_labeled(stream, "n", 1, &bad, 1), WEIR_ERR_NAME);
    cr_assert_eq(weir_add_value_labeled(stream, "n", 1, &none, 1), WEIR_ERR_NAME);
    cr_assert_eq(weir_add_value_labeled(stream, "n", 1, NULL, 1), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_add_value_labeled(stream, "", 1, twice, 1), WEIR_ERR_NAME);
    deliver(0);
}

Test(instruments, the_total_of_a_name_with_too_many_label_sets_stays_exact)
{
    enum { USERS = 3000, ALLOWED = 2000 };
    double total = 0, shared = 0;
    for (int i = 0; i < USERS; i++) {
        char user[16];
        snprintf(user, sizeof user, "%d", i);
        cr_assert_eq(weir_add_value_labeled(stream, "n", 1, &(weir_label){"user", user}, 1), 0);
    }
    deliver(USERS);
    for (size_t i = 0; i < USERS; i++) {
        cr_assert_str_eq(capture_at(i)->name, "n");
        total += capture_at(i)->value;
        shared += strstr(capture_at(i)->labels, "weir_overflow") != NULL;
    }
    cr_assert_eq(total, USERS);
    cr_assert_eq(shared, USERS - ALLOWED);
}

/* ---- Typed events ---------------------------------------------------------------------------- */

Test(instruments, an_event_may_have_doubles_and_integers)
{
    cr_assert_eq(WEIR_EMIT_TYPED(stream, {"epoch", WEIR_INT(3)}, {"loss", WEIR_DOUBLE(0.5)}), 0);
    const weir_typed_value bad = {"x", {.kind = 7}};
    cr_assert_eq(weir_emit_typed(stream, &bad, 1), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_emit_typed(stream, NULL, 0), 0);
    deliver(2);
    cr_assert_eq(capture_at(0)->kind, WEIR_KIND_INT);
    cr_assert_eq(capture_at(0)->integer, 3);
    cr_assert(capture_at(0)->more);
    cr_assert_eq(capture_at(1)->value, 0.5);
    cr_assert_eq(capture_at(0)->time_ns, capture_at(1)->time_ns);
}

/* ---- Durations ------------------------------------------------------------------------------- */

static void measured(void)
{
    WEIR_PROF_HERE(prof, stream);
}

Test(instruments, a_measurement_may_be_named_after_its_place)
{
    measured();
    deliver(2);
    cr_assert_str_eq(capture_at(0)->name, "instruments.c:measured.success");
    cr_assert_eq(capture_at(0)->instrument, WEIR_COUNTER);
    cr_assert_eq(capture_at(0)->integer, 1);
    cr_assert_str_eq(capture_at(1)->name, "instruments.c:measured.duration.ms");
    cr_assert_eq(capture_at(1)->instrument, WEIR_HISTOGRAM);
    cr_assert_str_eq(capture_at(1)->unit, "ms");
}

Test(instruments, a_measurement_may_get_labels_at_its_end)
{
    const weir_label route = {"route", "/x"};
    weir_prof prof = weir_prof_begin(stream, "handle");
    weir_prof_fail(&prof);
    weir_prof_end_labeled(&prof, &route, 1);
    weir_prof_end_labeled(&prof, &route, 1);
    deliver(2);
    cr_assert_str_eq(capture_at(0)->name, "handle.failure");
    cr_assert(strstr(capture_at(0)->labels, "/x") && strstr(capture_at(1)->labels, "/x"));
    cr_assert_eq(capture_at(1)->instrument, WEIR_HISTOGRAM);
}

Test(instruments, a_measurement_with_a_bad_name_is_refused_and_counted)
{
    weir_prof prof = weir_prof_begin(stream, "bad\n");
    weir_prof_end(&prof);
    weir_stats stats;
    weir_get_stats(&stats, sizeof stats);
    cr_assert_eq(stats.refused[WEIR_REFUSED_NAME], 2);
    deliver(0);
}

/* Declares one of the series as something else, so that the measurement has none of its own. */
static void take_name(const char *name)
{
    weir_get_gauge(stream, name);
}

Test(instruments, a_measurement_without_series_of_its_own_keeps_its_name_and_labels)
{
    const weir_label route = {"route", "/x"};
    take_name("handle.success");
    take_name("instruments.c:measured.success");
    weir_prof prof = weir_prof_begin(stream, "handle");
    weir_prof_end_labeled(&prof, &route, 1);
    weir_prof_end_labeled(&prof, &route, 1);
    measured();
    deliver(4);
    cr_assert_str_eq(capture_at(0)->name, "handle.success");
    cr_assert_str_eq(capture_at(1)->name, "handle.duration.ms");
    cr_assert(strstr(capture_at(0)->labels, "/x") && strstr(capture_at(1)->labels, "/x"));
    cr_assert_str_eq(capture_at(2)->name, "instruments.c:measured.success");
    cr_assert_str_eq(capture_at(3)->name, "instruments.c:measured.duration.ms");
}

Test(instruments, a_measurement_with_a_name_that_is_too_long_or_empty_is_refused_not_cut)
{
    static char longest[300];
    memset(longest, 'f', sizeof longest - 1);
    weir_prof here = weir_prof_begin_here(stream, "/src/file.c", longest);
    weir_prof_end(&here);
    weir_prof named = weir_prof_begin(stream, longest);
    weir_prof_end(&named);
    weir_prof empty = weir_prof_begin(stream, "");
    weir_prof_end(&empty);
    weir_prof none = weir_prof_begin(stream, NULL);
    weir_prof_end(&none);
    weir_stats stats;
    weir_get_stats(&stats, sizeof stats);
    cr_assert_eq(stats.refused[WEIR_REFUSED_NAME], 8);
    deliver(0);
}

/* ---- Starting -------------------------------------------------------------------------------- */

Test(instruments, a_program_may_start_weir_before_its_first_value)
{
    cr_assert_eq(weir_start(), 0);
    cr_assert_eq(weir_start(), 0);
    weir_add_value(stream, "n", 1);
    deliver(1);
}
