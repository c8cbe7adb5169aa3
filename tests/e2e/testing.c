/* <weir/testing.h>, used as in the tests of a program. */

#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/testing.h>

#include "api_ledger.h"

static void set_up(void)
{
    cr_assert_eq(weir_testing_start(), 0, "%s", weir_last_error());
}

TestSuite(testing, .init = set_up);

static weir_stream *stream_of(const char *group)
{
    return weir_get_stream(group);
}

static void add(const char *name, double value)
{
    cr_assert_eq(weir_add_value(stream_of("g"), name, value), 0);
}

/* ---- Capturing ------------------------------------------------------------------------------- */

Test(testing, counts_and_values_are_of_the_requested_group_and_name)
{
    double values[2] = {0, 0};
    add("a", 1);
    add("b", 2);
    add("a", 3);
    weir_add_value(stream_of("h"), "a", 4);
    cr_assert_eq(weir_testing_count("g", "a"), 2);
    cr_assert_eq(weir_testing_count(NULL, "a"), 3);
    cr_assert_eq(weir_testing_count("g", NULL), 3);
    cr_assert_eq(weir_testing_count(NULL, NULL), 4);
    cr_assert_eq(weir_testing_count("g", "c"), 0);
    cr_assert_eq(weir_testing_last("g", "a"), 3);
    cr_assert(isnan(weir_testing_last("g", "c")));
    cr_assert_eq(weir_testing_values(NULL, "a", values, 2), 3);
    cr_assert(values[0] == 1 && values[1] == 3);
    assert_ledger("testing");
}

Test(testing, a_sample_has_all_its_properties)
{
    weir_label labels[] = {{"route", "/x"}};
    weir_testing_sample sample;
    weir_stream *stream = weir_get_stream_labeled("g", labels, 1);
    weir_sample_spec spec = {
        .size = sizeof spec, .name = "total", .value = 5, .time_ns = 77, .cumulative = true, .metadata = "why"};
    weir_describe(stream, "total", "ms", "in all");
    cr_assert_eq(weir_add(stream, &spec), 0);
    cr_assert_eq(weir_add_int(stream, "n", INT64_MAX), 0);
    WEIR_EMIT(stream, {"x", 1}, {"y", 2});
    cr_assert(weir_testing_get("g", "total", 0, &sample, sizeof sample));
    cr_assert(sample.cumulative && !sample.is_integer && sample.value == 5 && sample.time_ns == 77);
    cr_assert_str_eq(sample.metadata, "why");
    cr_assert_str_eq(sample.unit, "ms");
    cr_assert_str_eq(sample.help, "in all");
    cr_assert_str_eq(weir_testing_label(&sample, "route"), "/x");
    cr_assert_null(weir_testing_label(&sample, "other"));
    cr_assert(weir_testing_get("g", "n", 0, &sample, sizeof sample));
    cr_assert(sample.is_integer && sample.integer == INT64_MAX);
    cr_assert(weir_testing_get("g", "x", 0, &sample, sizeof sample) && sample.more);
    cr_assert(weir_testing_get("g", "y", 0, &sample, sizeof sample) && !sample.more);
    cr_assert_not(weir_testing_get("g", "y", 1, &sample, sizeof sample));
    assert_ledger("testing");
}

Test(testing, clear_and_start_remove_captured_values)
{
    add("a", 1);
    weir_testing_clear();
    cr_assert_eq(weir_testing_count(NULL, NULL), 0);
    add("a", 2);
    weir_testing_add_outcome(WEIR_TESTING_RETRY, 0, 1000000);
    weir_testing_set_time(5);
    set_up();
    cr_assert_eq(weir_testing_count(NULL, NULL), 0);
    cr_assert_eq(weir_testing_tries(), 0);
    add("a", 3);
    cr_assert_eq(weir_testing_last(NULL, "a"), 3);
    cr_assert_eq(weir_testing_count(NULL, "a"), 1);
    assert_ledger("testing");
}

enum { LABEL_SETS = 300 }; /* enough that their memory is given to others */

static weir_stream *stream_with_id(int id)
{
    char text[16];
    snprintf(text, sizeof text, "%d", id);
    return weir_get_stream_labeled("g", &(weir_label){"id", text}, 1);
}

static bool is_one_of(weir_stream *const *streams, const weir_stream *stream)
{
    for (int i = 0; i < LABEL_SETS; i++)
        if (streams[i] == stream)
            return true;
    return false;
}

Test(testing, a_sample_keeps_its_labels_when_other_label_sets_get_their_memory)
{
    static weir_stream *streams[LABEL_SETS];
    static weir_testing_sample samples[LABEL_SETS];
    char text[16];
    int next = LABEL_SETS;
    for (int i = 0; i < LABEL_SETS; i++)
        weir_add_value(streams[i] = stream_with_id(i), "a", i);
    for (size_t i = 0; i < LABEL_SETS; i++)
        cr_assert(weir_testing_get("g", "a", i, &samples[i], sizeof samples[i]));
    for (int i = 0; i < LABEL_SETS; i++)
        cr_assert_eq(weir_stream_remove(streams[i]), 0, "%s", weir_last_error());
    while (!is_one_of(streams, stream_with_id(next++))) {
        add("b", 1);
        cr_assert_eq(weir_testing_count("g", "a"), LABEL_SETS);
    }
    for (int i = 0; i < LABEL_SETS; i++)
        stream_with_id(next++);
    for (int i = 0; i < LABEL_SETS; i++) {
        snprintf(text, sizeof text, "%d", i);
        cr_assert_eq(samples[i].label_count, 1);
        cr_assert_str_eq(weir_testing_label(&samples[i], "id"), text);
    }
}

static void *add_from_a_thread(void *unused)
{
    (void)unused;
    weir_testing_wait("g", "go", 1, -1);
    add("later", 1);
    return NULL;
}

Test(testing, values_of_other_threads_are_waited_for)
{
    pthread_t thread;
    pthread_create(&thread, NULL, add_from_a_thread, NULL);
    cr_assert_not(weir_testing_wait("g", "later", 1, 0));
    add("go", 1);
    cr_assert(weir_testing_wait("g", "later", 1, -1));
    pthread_join(thread, NULL);
    assert_ledger("testing");
}

static bool works_in_child(void)
{
    return weir_testing_count(NULL, NULL) == 0 && weir_testing_start() == 0 &&
           weir_add_value(weir_get_stream("g"), "b", 2) == 0 && weir_testing_last("g", "b") == 2;
}

Test(testing, a_forked_child_starts_with_an_empty_state)
{
    int status = -1;
    add("a", 1);
    cr_assert_eq(weir_testing_count("g", "a"), 1);
    pid_t child = fork();
    if (child == 0)
        _exit(works_in_child() ? 0 : 1);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    cr_assert_eq(weir_testing_count("g", NULL), 1);
    assert_ledger("testing");
}

/* ---- Time ------------------------------------------------------------------------------------ */

static int64_t time_of(const char *name)
{
    weir_testing_sample sample;
    cr_assert(weir_testing_get("g", name, 0, &sample, sizeof sample), "%s", name);
    return sample.time_ns;
}

Test(testing, time_can_be_fixed_and_earlier_values_keep_theirs)
{
    enum { LONG_AGO = 1000000 };
    cr_assert_eq(weir_testing_advance(1), WEIR_ERR_ARGUMENT);
    add("before", 1);
    weir_testing_set_time(LONG_AGO);
    add("first", 1);
    cr_assert_eq(weir_testing_advance(5), 0);
    add("second", 1);
    cr_assert_eq(weir_testing_advance(-2), 0);
    add("third", 1);
    weir_testing_set_time(-1);
    add("after", 1);
    cr_assert_gt(time_of("before"), 1000 * (int64_t)LONG_AGO);
    cr_assert_eq(time_of("first"), LONG_AGO);
    cr_assert_eq(time_of("second"), LONG_AGO + 5);
    cr_assert_eq(time_of("third"), LONG_AGO + 3);
    cr_assert_geq(time_of("after"), time_of("before"));
    assert_ledger("testing");
}

Test(testing, time_can_be_fixed_with_either_clock)
{
    static const char config[] = "{\"settings\":{\"clock\":\"system\"},\"handlers\":{\"testing\":{\"type\":"
                                 "\"testing\"}},\"groups\":{\"*\":\"testing\"}}";
    cr_assert_eq(weir_configure_text(config, strlen(config)), 0, "%s", weir_last_error());
    weir_testing_set_time(42);
    add("a", 1);
    cr_assert_eq(time_of("a"), 42);
}

/* ---- Failing --------------------------------------------------------------------------------- */

static weir_handler_stats stats_now(void)
{
    weir_handler_stats stats;
    cr_assert_eq(weir_get_handler_stats("testing", &stats, sizeof stats), 0);
    assert_ledger("testing");
    return stats;
}

Test(testing, a_script_of_retries_and_partial_deliveries_loses_and_repeats_nothing)
{
    double values[6];
    weir_testing_block();
    add("a", 0);
    cr_assert(weir_testing_wait_blocked(-1));
    for (int i = 1; i < 6; i++)
        add("a", i);
    weir_testing_add_outcome(WEIR_TESTING_RETRY, 0, 1);
    weir_testing_add_outcome(WEIR_TESTING_REOPEN, 1, 1);
    weir_testing_add_outcome(WEIR_TESTING_RETRY, 2, 1);
    weir_testing_release();
    cr_assert_eq(weir_testing_values("g", "a", values, 6), 6);
    for (int i = 0; i < 6; i++)
        cr_assert_eq(values[i], i);
    cr_assert_eq(stats_now().delivered, 6);
    cr_assert_geq(weir_testing_tries(), 4);
}

Test(testing, an_event_is_captured_as_a_whole_or_not_at_all)
{
    weir_testing_add_outcome(WEIR_TESTING_DROP, 2, 1);
    WEIR_EMIT(stream_of("g"), {"a", 1}, {"b", 2}, {"c", 3});
    cr_assert_eq(weir_testing_count(NULL, NULL), 0);
    cr_assert_eq(stats_now().dropped[WEIR_DROPPED_REJECTED], 3);
}

Test(testing, a_handler_that_failed_permanently_works_again_in_the_next_test)
{
    weir_testing_add_outcome(WEIR_TESTING_FAILED, 0, 1);
    add("a", 1);
    add("a", 2);
    cr_assert_eq(weir_testing_count(NULL, NULL), 0);
    cr_assert_eq(stats_now().dropped[WEIR_DROPPED_FAILED], 2);
    set_up();
    add("a", 3);
    cr_assert_eq(weir_testing_last("g", "a"), 3);
    assert_ledger("testing");
}

Test(testing, a_hanging_handler_is_detected_and_released)
{
    cr_assert_not(weir_testing_wait_blocked(0));
    weir_testing_block();
    add("a", 1);
    cr_assert(weir_testing_wait_blocked(-1));
    cr_assert_eq(weir_testing_count("g", "a"), 0);
    cr_assert_eq(weir_flush(0), WEIR_ERR_TIMEOUT);
    weir_testing_release();
    cr_assert_eq(weir_testing_count("g", "a"), 1);
    assert_ledger("testing");
}

Test(testing, unsupported_requests_return_errors)
{
    cr_assert_eq(weir_testing_add_outcome((enum weir_testing_outcome)9, 0, 1), WEIR_ERR_ARGUMENT);
    cr_assert(strstr(weir_last_error(), "weir_testing_add_outcome"));
}
