/* Objects in routes: what a handler gets of the values, and how those it does not get are counted. */

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "api_capture.h"
#include "api_ledger.h"
#include "day.h"

/* Text of a configuration, with ' in place of ". */
static void configure(const char *text)
{
    char json[4096];
    size_t length = strlen(text);
    cr_assert_lt(length, sizeof json);
    for (size_t i = 0; i <= length; i++)
        json[i] = text[i] == '\'' ? '"' : text[i];
    cr_assert_eq(weir_configure_text(json, length), 0, "%s", weir_last_error());
}

/* One handler "capture" whose route for all groups is an object with these members. */
static void route(const char *members)
{
    char text[2048];
    snprintf(text, sizeof text, "{'groups': {'*': {'to': 'capture', %s}}}", members);
    configure(text);
}

TestSuite(route_objects, .init = capture_register);

static weir_handler_stats stats_of(const char *handler)
{
    weir_handler_stats stats;
    cr_assert_eq(weir_get_handler_stats(handler, &stats, sizeof stats), 0, "%s", weir_last_error());
    return stats;
}

static void deliver(void)
{
    cr_assert_eq(weir_flush(-1), 0, "%s", weir_last_error());
    assert_ledger("capture");
}

/* What has arrived, as "name{labels}=value name=value", with a '+' before a sample that is of the event of the
 * one before. */
static const char *arrived(void)
{
    static char text[4096];
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < capture_count(); i++) {
        const struct captured *sample = capture_at(i);
        bool joins = i && capture_at(i - 1)->more;
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%s%s%s=%g",
                                   joins    ? "+"
                                   : length ? " "
                                            : "",
                                   sample->name, sample->labels[0] ? "{" : "", sample->labels,
                                   sample->labels[0] ? "}" : "", sample->value);
    }
    return text;
}

static void expect_arrived(const char *expected)
{
    deliver();
    cr_assert_str_eq(arrived(), expected);
}

static void expect_filtered(uint64_t filtered)
{
    weir_handler_stats stats = stats_of("capture");
    cr_assert_eq(stats.dropped[WEIR_DROPPED_FILTERED], filtered, "%ju",
                 (uintmax_t)stats.dropped[WEIR_DROPPED_FILTERED]);
    cr_assert_eq(stats.offered, stats.delivered + filtered);
}

static void add(const char *name, double value)
{
    cr_assert_eq(weir_add_value(weir_get_stream("app"), name, value), 0, "%s", weir_last_error());
}

static weir_stream *labeled(const char *key, const char *value, const char *key2, const char *value2)
{
    const weir_label labels[] = {{key, value}, {key2, value2}};
    return weir_get_stream_labeled("app", labels, key2 ? 2 : 1);
}

/* ---- Filters --------------------------------------------------------------------------------- */

Test(route_objects, only_named_values_pass_and_the_others_are_counted_as_filtered)
{
    route("'only': ['a', '*.ms']");
    add("a", 1);
    add("b", 2);
    add("x.ms", 3);
    add("ab", 4);
    expect_arrived("a=1 x.ms=3");
    expect_filtered(2);
}

Test(route_objects, except_takes_names_out_of_those_that_only_lets_pass)
{
    route("'only': ['a*'], 'except': ['*z', 'ab']");
    const char *names[] = {"a", "ab", "abc", "az", "b"};
    for (int i = 0; i < 5; i++)
        add(names[i], i);
    expect_arrived("a=0 abc=2");
    expect_filtered(3);
}

Test(route_objects, an_event_keeps_what_passes_as_one_event_with_its_metadata)
{
    route("'except': ['noise*']");
    WEIR_EMIT(weir_get_stream("app"), {"noise1", 1}, {"a", 2}, {"noise2", 3}, {"b", 4}, {"noise3", 5});
    WEIR_EMIT(weir_get_stream("app"), {"noise1", 1}, {"noise2", 3});
    weir_add(weir_get_stream("app"),
             &(weir_sample_spec){.size = sizeof(weir_sample_spec), .name = "c", .value = 6, .metadata = "m"});
    weir_add(weir_get_stream("app"), &(weir_sample_spec){.size = sizeof(weir_sample_spec),
                                                         .name = "noise",
                                                         .value = 7,
                                                         .metadata = "long enough to take several slots"});
    add("d", 8);
    expect_arrived("a=2+b=4 c=6 d=8");
    cr_assert_str_eq(capture_at(2)->note, "m");
    cr_assert_eq(capture_at(0)->time_ns, capture_at(1)->time_ns);
    expect_filtered(6);
}

Test(route_objects, filtered_values_are_no_losses_for_a_flush)
{
    route("'only': ['none']");
    add("a", 1);
    cr_assert_eq(weir_flush(-1), 0, "%s", weir_last_error());
    expect_filtered(1);
}

/* ---- Names and labels ------------------------------------------------------------------------ */

Test(route_objects, names_are_replaced_the_most_specific_first)
{
    route("'rename': {'db.*': 'database.*', 'db.calls': 'calls', '*.ms': '*.milliseconds', 'old': 'new', "
          "'db.very.*': 'v'}");
    const char *names[] = {"db.calls", "db.x", "db.very.slow", "a.ms", "old", "other"};
    for (int i = 0; i < 6; i++)
        add(names[i], i);
    expect_arrived("calls=0 database.x=1 v=2 a.milliseconds=3 new=4 other=5");
    expect_filtered(0);
}

Test(route_objects, a_name_that_becomes_too_long_is_dropped_as_unrepresentable)
{
    char name[256] = "";
    memset(name, 'n', 250);
    route("'rename': {'*': 'prefix.*'}");
    add(name, 1);
    add("a", 2);
    cr_assert_eq(weir_flush(-1), WEIR_ERR_DROPPED);
    assert_ledger("capture");
    cr_assert_str_eq(arrived(), "prefix.a=2");
    cr_assert_eq(stats_of("capture").dropped[WEIR_DROPPED_UNREPRESENTABLE], 1);
}

Test(route_objects, labels_are_added_and_replace_those_of_the_same_keys)
{
    route("'labels': {'site': 'x', 'zone': '${NOT_SET:-z}'}");
    add("a", 1);
    weir_add_value(labeled("site", "own", "route", "/"), "a", 2);
    weir_add_value(labeled("alpha", "1", NULL, NULL), "a", 3);
    expect_arrived("a{site=x,zone=z}=1 a{route=/,site=x,zone=z}=2 a{alpha=1,site=x,zone=z}=3");
}

Test(route_objects, labels_are_kept_or_dropped_by_key)
{
    route("'keep_labels': ['route']");
    weir_add_value(labeled("route", "/", "user", "7"), "a", 1);
    expect_arrived("a{route=/}=1");
    route("'drop_labels': ['route', 'none']");
    weir_add_value(labeled("route", "/", "user", "7"), "a", 2);
    expect_arrived("a{route=/}=1 a{user=7}=2");
    route("'keep_labels': []");
    weir_add_value(labeled("route", "/", "user", "7"), "a", 3);
    expect_arrived("a{route=/}=1 a{user=7}=2 a=3");
}

Test(route_objects, filters_see_the_old_names_and_dropped_labels_may_be_among_the_replaced)
{
    route("'only': ['db.*'], 'except': ['db.noise'], 'rename': {'db.*': '*'}, 'labels': {'kept': '1'}, "
          "'drop_labels': ['user']");
    weir_add_value(labeled("user", "7", "kept", "0"), "db.calls", 1);
    weir_add_value(labeled("user", "8", NULL, NULL), "db.noise", 2);
    add("calls", 3);
    expect_arrived("calls{kept=1}=1");
    expect_filtered(2);
}

Test(route_objects, a_renamed_value_keeps_its_unit_and_instrument)
{
    route("'rename': {'a': 'b'}");
    const weir_metric_spec spec = {sizeof spec, WEIR_COUNTER, "requests", "how many", NULL, 0};
    add("a", 1);
    deliver();
    cr_assert_eq(capture_at(0)->instrument, WEIR_VALUE);
    cr_assert_eq(weir_declare(weir_get_stream("app"), "a", &spec), 0, "%s", weir_last_error());
    add("a", 2);
    expect_arrived("b=1 b=2");
    cr_assert_eq(capture_at(1)->instrument, WEIR_COUNTER);
    cr_assert_str_eq(capture_at(1)->unit, "requests");
    cr_assert_str_eq(capture_at(1)->help, "how many");
    add("b", -3); /* the program's own name b means what the program says */
    expect_arrived("b=1 b=2 b=-3");
}

Test(route_objects, label_sets_of_new_labels_count_against_the_limit_of_their_name)
{
    configure(
        "{'settings': {'max_series_per_name': 3}, 'groups': {'*': {'to': 'capture', 'rename': {'a': 'b'}}}}");
    for (int i = 0; i < 5; i++) {
        char value[16];
        snprintf(value, sizeof value, "%d", i);
        weir_add_value(labeled("n", value, NULL, NULL), "a", i);
    }
    expect_arrived("b{n=0}=0 b{n=1}=1 b{n=2}=2 b{weir_overflow=true}=3 b{weir_overflow=true}=4");
}

/* ---- Sampling -------------------------------------------------------------------------------- */

static double sum_of(const char *name, size_t *count)
{
    double sum = 0;
    *count = 0;
    for (size_t i = 0; i < capture_count(); i++)
        if (strcmp(capture_at(i)->name, name) == 0) {
            sum += capture_at(i)->value;
            ++*count;
        }
    return sum;
}

Test(route_objects, a_sample_of_each_series_is_exact_to_one_event_and_increments_are_scaled)
{
    size_t count;
    route("'sample': 0.1");
    weir_metric *counter = weir_get_counter(weir_get_stream("app"), "calls");
    weir_metric *gauge = weir_get_gauge(weir_get_stream("app"), "level");
    for (int i = 0; i < 1000; i++) { /* in turns, which must not favour one of them */
        weir_metric_add(counter, 3);
        weir_metric_add(gauge, 5);
        add("value", 7);
    }
    deliver();
    expect_filtered(2700);
    cr_assert_float_eq(sum_of("calls", &count), 3000, 1e-9);
    cr_assert_eq(count, 100);
    cr_assert_float_eq(sum_of("level", &count), 500, 1e-9);
    cr_assert_eq(count, 100);
    cr_assert_float_eq(sum_of("value", &count), 700, 1e-9);
    cr_assert_eq(count, 100);
}

Test(route_objects, sampled_integers_stay_integers_where_that_is_exact)
{
    const weir_metric_spec spec = {sizeof spec, WEIR_COUNTER, NULL, NULL, NULL, 0};
    cr_assert_eq(weir_declare(weir_get_stream("app"), "n", &spec), 0);
    route("'sample': 0.25");
    for (int i = 0; i < 4; i++)
        weir_add_int(weir_get_stream("app"), "n", INT64_C(9007199254740993));
    deliver();
    cr_assert_eq(capture_count(), 1);
    cr_assert_eq(capture_at(0)->integer, INT64_C(4) * INT64_C(9007199254740993));
    route("'sample': 0.4");
    for (int i = 0; i < 5; i++)
        weir_add_int(weir_get_stream("app"), "n", 2);
    deliver();
    cr_assert_eq(capture_count(), 3);
    cr_assert_float_eq(capture_at(1)->value, 5, 1e-9);
}

Test(route_objects, sampling_takes_whole_events)
{
    route("'sample': 0.5");
    for (int i = 0; i < 100; i++)
        WEIR_EMIT(weir_get_stream("app"), {"a", i}, {"b", i}, {"c", i});
    deliver();
    cr_assert_eq(capture_count(), 150);
    for (size_t i = 0; i < capture_count(); i += 3) {
        cr_assert_str_eq(capture_at(i)->name, "a");
        cr_assert(capture_at(i)->more && capture_at(i + 1)->more && !capture_at(i + 2)->more);
        cr_assert_eq(capture_at(i)->value, capture_at(i + 2)->value);
    }
    expect_filtered(150);
}

/* Each has one event only: sampling by a plain count would take all or none. */
Test(route_objects, of_many_series_with_one_event_each_about_the_right_part_passes)
{
    char name[32];
    configure("{'groups': {'*': {'to': 'capture', 'sample': 0.5}}, 'handlers': {'capture': {'type': 'capture', "
              "'queue': '4MiB'}}}");
    for (int i = 0; i < 4000; i++) {
        snprintf(name, sizeof name, "n%d", i);
        add(name, i);
    }
    deliver();
    /* 4000 throws of a coin: further from 2000 than 300, which is nine times their deviation, never happens */
    cr_assert(capture_count() > 1700 && capture_count() < 2300, "%zu", capture_count());
    expect_filtered(4000 - capture_count());
}

/* ---- Routes ---------------------------------------------------------------------------------- */

Test(route_objects, a_route_mixes_names_and_objects_and_inherits)
{
    configure("{'handlers': {'one': {'type': 'capture'}, 'two': {'type': 'capture'}}, 'groups': {"
              "'*': ['one'], 'app': ['inherit', {'to': 'two', 'only': ['a'], 'rename': {'a': 'two.a'}}], "
              "'app.db': ['inherit', {'to': 'one', 'rename': {'*': 'one.*'}}]}}");
    add("a", 1);
    add("b", 2);
    weir_add_value(weir_get_stream("app.db"), "a", 3);
    cr_assert_eq(weir_flush(-1), 0);
    assert_ledger("one");
    assert_ledger("two");
    size_t count;
    cr_assert_eq(sum_of("a", &count), 1);
    cr_assert_eq(sum_of("b", &count), 2);
    cr_assert_eq(sum_of("two.a", &count), 4);
    cr_assert_eq(sum_of("one.a", &count), 3);
    cr_assert_eq(stats_of("one").dropped[WEIR_DROPPED_FILTERED], 0);
    cr_assert_eq(stats_of("two").dropped[WEIR_DROPPED_FILTERED], 1);
}

Test(route_objects, one_object_for_several_handlers_takes_one_sample_for_all)
{
    configure("{'handlers': {'one': {'type': 'capture'}, 'two': {'type': 'capture'}}, 'groups': {"
              "'app': {'to': ['one', 'two'], 'sample': 0.5}, 'other': 'two'}}");
    for (int i = 0; i < 100; i++)
        add("a", i);
    cr_assert_eq(weir_flush(-1), 0);
    cr_assert_eq(stats_of("one").delivered, 50);
    cr_assert_eq(stats_of("two").delivered, 50);
    assert_ledger("one");
    assert_ledger("two");
    double seen[100] = {0};
    for (size_t i = 0; i < capture_count(); i++)
        seen[(int)capture_at(i)->value]++;
    for (int i = 0; i < 100; i++)
        cr_assert(seen[i] == 0 || seen[i] == 2, "%d: %g", i, seen[i]);
}

Test(route_objects, a_synchronous_call_returns_at_once_if_its_value_is_left_out)
{
    configure("{'handlers': {'capture': {'type': 'capture', 'delivery': 'sync'}}, "
              "'groups': {'*': {'to': 'capture', 'only': ['a']}}}");
    for (int i = 0; i < 10; i++) {
        add("a", i);
        cr_assert_eq(capture_count(), (size_t)i + 1);
        add("b", i);
    }
    assert_ledger("capture");
    expect_filtered(10);
}

static double last_of(const char *name, const char *labels)
{
    for (size_t i = capture_count(); i-- > 0;)
        if (strcmp(capture_at(i)->name, name) == 0 && strcmp(capture_at(i)->labels, labels) == 0)
            return capture_at(i)->value;
    return NAN;
}

Test(route_objects, dropped_labels_are_summed_where_the_handler_aggregates)
{
    await_day();
    configure(
        "{'handlers': {'capture': {'type': 'capture', 'aggregate': '1d'}}, 'groups': {'*': {'to': 'capture', "
        "'only': ['calls', 'size'], 'rename': {'calls': 'requests'}, 'drop_labels': ['user']}}}");
    for (int i = 0; i < 30; i++) {
        char user[8];
        snprintf(user, sizeof user, "%d", i % 10);
        weir_stream *stream = labeled("user", user, "route", i % 2 ? "/a" : "/b");
        weir_count(stream, "calls", 2);
        weir_add_value(stream, "size", i);
        weir_add_value(stream, "noise", i);
    }
    deliver();
    cr_assert_eq(last_of("requests", "route=/a"), 30);
    cr_assert_eq(last_of("requests", "route=/b"), 30);
    cr_assert_eq(last_of("size.count", "route=/a"), 15);
    cr_assert_eq(last_of("size.sum", "route=/a"), 225);
    cr_assert_eq(last_of("size.sum", "route=/b"), 210);
    cr_assert_eq(stats_of("capture").dropped[WEIR_DROPPED_FILTERED], 30);
    size_t before = capture_count();
    deliver(); /* the counters' totals again, and nothing under the old names */
    for (size_t i = before; i < capture_count(); i++)
        cr_assert_str_eq(capture_at(i)->name, "requests");
}

Test(route_objects, a_total_goes_on_when_the_route_changes)
{
    await_day();
    weir_metric *calls = weir_get_counter(weir_get_stream("app"), "calls");
    static const char *const handlers = "'handlers': {'capture': {'type': 'capture', 'aggregate': '1d'}}";
    char text[500];
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "{%s, 'groups': {'*': %s}}", handlers,
                 i == 1 ? "{'to': 'capture', 'except': ['x']}" : "'capture'");
        configure(text);
        weir_metric_add(calls, 10);
        deliver();
        cr_assert_eq(last_of("calls", ""), 10 * (i + 1));
    }
}

Test(route_objects, own_metrics_pass_through_objects_too)
{
    configure("{'settings': {'stats_interval': '5ms'}, 'groups': {'app': {'to': 'capture', 'except': ['a']}, "
              "'weir': {'to': 'capture', "
              "'only': ['offered'], 'rename': {'offered': 'got'}, 'keep_labels': ['handler']}}}");
    add("a", 1);
    size_t count = 0;
    for (int i = 0; i < 24000 && !count; i++) {
        usleep(10000);
        deliver();
        sum_of("got", &count);
    }
    cr_assert_gt(count, 0);
    for (size_t i = 0; i < capture_count(); i++)
        cr_assert_str_eq(capture_at(i)->name, "got");
}

Test(route_objects, a_forked_child_expands_labels_anew)
{
    route("'labels': {'pid': '${PID}'}");
    char expected[64];
    add("a", 1);
    deliver();
    snprintf(expected, sizeof expected, "pid=%ld", (long)getpid());
    cr_assert_str_eq(capture_at(0)->labels, expected);
    pid_t child = fork();
    if (child == 0) {
        weir_add_value(weir_get_stream("app"), "a", 2);
        bool delivered = weir_flush(-1) == 0 && capture_count() == 2;
        snprintf(expected, sizeof expected, "pid=%ld", (long)getpid());
        _exit(delivered && strcmp(capture_at(1)->labels, expected) == 0 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    cr_assert_eq(status, 0);
}
