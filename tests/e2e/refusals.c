/* Invalid calls are refused, counted and explained; nothing crashes. */

#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "api_capture.h"
#include "api_ledger.h"

static void set_up(void)
{
    capture_register();
    cr_assert_eq(weir_configure("*", "capture", NULL), 0);
}

TestSuite(refusals, .init = set_up);

static uint64_t refused(enum weir_refusal why)
{
    weir_stats stats;
    weir_get_stats(&stats, sizeof stats);
    return stats.refused[why];
}

Test(refusals, invalid_groups_give_a_stream_that_refuses_and_counts)
{
    static char long_name[300];
    memset(long_name, 'x', 256);
    static const struct {
        const char *group, *rule;
    } bad[] = {
        {NULL, "NULL"},
        {"", "empty"},
        {".", "empty part"},
        {"a..b", "empty part"},
        {".a", "empty part"},
        {"a.", "empty part"},
        {"*", "'*'"},
        {"a.*", "'*'"},
        {"a\nb", "control character"},
        {"a\x7f", "control character"},
        {"\xc2\x85", "control character"},
        {"\xff", "invalid UTF-8"},
        {"\xc0\xaf", "invalid UTF-8"},
        {"\xed\xa0\x80", "invalid UTF-8"},
        {long_name, "too long"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weir_stream *stream = weir_get_stream(bad[i].group);
        cr_assert_not_null(stream);
        cr_assert(strstr(weir_last_error(), bad[i].rule), "%zu: %s", i, weir_last_error());
        cr_assert_eq(weir_add_value(stream, "x", 1), WEIR_ERR_NAME);
        cr_assert_eq(weir_metric_add(weir_get_metric(stream, "x"), 1), WEIR_ERR_NAME);
        cr_assert(!weir_stream_enabled(stream));
        cr_assert_eq(refused(WEIR_REFUSED_NAME), 2 * (i + 1));
    }
    assert_ledger("capture");
}

Test(refusals, invalid_names_are_refused_with_the_rule)
{
    static char mebibyte[1024 * 1024 + 1];
    memset(mebibyte, 'x', sizeof mebibyte - 1);
    weir_stream *stream = weir_get_stream("g");
    const char *bad[] = {"", "a\rb", "\x1b[31m", "\xe2\x28\xa1", mebibyte};
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(weir_add_value(stream, bad[i], 1), WEIR_ERR_NAME);
        cr_assert(strstr(weir_last_error(), "name \""), "%s", weir_last_error());
        cr_assert(!strchr(weir_last_error(), '\x1b'));
        cr_assert_eq(weir_metric_add(weir_get_metric(stream, bad[i]), 1), WEIR_ERR_NAME);
    }
    char longest[256];
    memset(longest, 'y', 255);
    longest[255] = '\0';
    cr_assert_eq(weir_add_value(stream, longest, 1), 0);
    cr_assert_eq(weir_add_value(stream, "naïve \"quoted\" name", 1), 0);
    weir_flush(-1);
    cr_assert_eq(capture_count(), 2);
    assert_ledger("capture");
}

Test(refusals, invalid_labels_are_refused)
{
    char long_value[1100];
    memset(long_value, 'v', 1024);
    long_value[1024] = '\0';
    weir_label twice[] = {{"k", "1"}, {"k", "2"}}, empty_key[] = {{"", "1"}}, null_value[] = {{"k", NULL}},
               bad_value[] = {{"k", "\xff"}}, too_long[] = {{"k", long_value}},
               good[] = {{"k", "a\nb\"c"}, {"e", ""}};
    cr_assert_eq(weir_add_value(weir_get_stream_labeled("g", twice, 2), "x", 1), WEIR_ERR_NAME);
    weir_get_stream_labeled("g", twice, 2);
    cr_assert(strstr(weir_last_error(), "given twice"), "%s", weir_last_error());
    cr_assert_eq(weir_add_value(weir_get_stream_labeled("g", empty_key, 1), "x", 1), WEIR_ERR_NAME);
    cr_assert_eq(weir_add_value(weir_get_stream_labeled("g", null_value, 1), "x", 1), WEIR_ERR_NAME);
    cr_assert_eq(weir_add_value(weir_get_stream_labeled("g", bad_value, 1), "x", 1), WEIR_ERR_NAME);
    cr_assert_eq(weir_add_value(weir_get_stream_labeled("g", too_long, 1), "x", 1), WEIR_ERR_NAME);
    cr_assert_eq(weir_add_value(weir_get_stream_labeled("g", NULL, 3), "x", 1), WEIR_ERR_NAME);
    cr_assert_eq(weir_add_value(weir_get_stream_labeled("g", good, 2), "x", 1), 0);
    long_value[1023] = '\0';
    cr_assert_eq(weir_add_value(weir_get_stream_labeled("g", too_long, 1), "x", 1), 0);
}

Test(refusals, an_impossible_count_of_values_does_not_overflow_a_counter)
{
    weir_value value = {"x", 1};
    weir_stream *stream = weir_get_stream("g"), *bad = weir_get_stream("a..b");
    size_t counts[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / sizeof value, (size_t)UINT32_MAX + 1};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        cr_assert_eq(weir_emit(stream, &value, counts[i]), WEIR_ERR_TOO_LARGE);
        cr_assert_eq(refused(WEIR_REFUSED_TOO_LARGE), i + 1);
        cr_assert_eq(weir_emit(bad, &value, counts[i]), WEIR_ERR_NAME);
        cr_assert_eq(refused(WEIR_REFUSED_NAME), i + 1);
    }
    cr_assert_eq(weir_emit(stream, &value, UINT32_MAX), WEIR_ERR_TOO_LARGE);
    cr_assert_eq(refused(WEIR_REFUSED_TOO_LARGE), 4 + (uint64_t)UINT32_MAX);
    assert_ledger("capture");
}

Test(refusals, a_sample_of_an_unknown_kind_is_refused)
{
    weir_stream *stream = weir_get_stream("g");
    const int kinds[] = {WEIR_KIND_SUMMARY, -1, 1 << 8, INT_MAX};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        weir_sample_spec spec = {.size = sizeof spec, .name = "n", .kind = kinds[i], .value = 1, .integer = 1};
        cr_assert_eq(weir_add(stream, &spec), WEIR_ERR_ARGUMENT);
        cr_assert_str_eq(weir_last_error(), "weir_add: the kind is not WEIR_KIND_DOUBLE or WEIR_KIND_INT");
        cr_assert_eq(refused(WEIR_REFUSED_ARGUMENT), i + 1);
    }
    weir_flush(-1);
    cr_assert_eq(capture_count(), 0);
    assert_ledger("capture");
}

Test(refusals, bad_labels_of_a_sample_are_refused)
{
    const weir_label fixed = {"host", "h"}, twice[] = {{"a", "1"}, {"a", "2"}}, bad = {"", "1"};
    weir_stream *stream = weir_get_stream_labeled("g", &fixed, 1);
    const struct {
        const weir_label *labels;
        size_t count;
        int error;
        const char *text;
    } cases[] = {
        {&fixed, 1, WEIR_ERR_NAME, "label key \"host\": given twice; keys must be unique"},
        {twice, 2, WEIR_ERR_NAME, "label key \"a\": given twice; keys must be unique"},
        {&bad, 1, WEIR_ERR_NAME, "label key \"\": empty; a name must have 1 to 255 bytes"},
        {NULL, 1, WEIR_ERR_ARGUMENT, "weir_add: the labels are NULL"},
    };
    for (int cumulative = 0; cumulative < 2; cumulative++) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            weir_sample_spec spec = {.size = sizeof spec,
                                     .name = "n",
                                     .labels = cases[i].labels,
                                     .label_count = cases[i].count,
                                     .cumulative = cumulative,
                                     .metadata = "text"};
            cr_assert_eq(weir_add(stream, &spec), cases[i].error);
            cr_assert_str_eq(weir_last_error(), cases[i].text, "%s", weir_last_error());
        }
    }
    cr_assert_eq(refused(WEIR_REFUSED_NAME), 6);
    cr_assert_eq(refused(WEIR_REFUSED_ARGUMENT), 2);
    weir_flush(-1);
    cr_assert_eq(capture_count(), 0);
    assert_ledger("capture");
}

Test(refusals, null_arguments_are_refused_everywhere)
{
    weir_value value = {"x", 1};
    weir_stream *stream = weir_get_stream("g");
    weir_stats stats;
    cr_assert_eq(weir_add_value(NULL, "x", 1), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_add_value(stream, NULL, 1), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_add_int(NULL, "x", 1), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_metric_add(NULL, 1), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_metric_add_int(NULL, 1), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_emit(NULL, &value, 1), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_emit(stream, NULL, 1), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_add(stream, NULL), WEIR_ERR_ARGUMENT);
    cr_assert_not_null(weir_get_metric(NULL, "x"));
    cr_assert_eq(weir_metric_add(weir_get_metric(NULL, "x"), 1), WEIR_ERR_NAME);
    cr_assert_eq(weir_metric_add(weir_get_metric(stream, NULL), 1), WEIR_ERR_NAME);
    cr_assert_eq(weir_describe(NULL, "x", NULL, NULL), WEIR_ERR_ARGUMENT);
    cr_assert(!weir_stream_enabled(NULL));
    cr_assert_eq(weir_configure_file(NULL), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_configure_text(NULL, 3), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_register_handler_type(NULL, NULL), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_get_stats(NULL, sizeof stats), WEIR_ERR_ARGUMENT);
    cr_assert_eq(weir_get_handler_stats("no such", (weir_handler_stats *)&stats, sizeof(size_t)),
                 WEIR_ERR_ARGUMENT);
    cr_assert(strstr(weir_last_error(), "no such"));
    assert_ledger("capture");
}

/* A thread's name cache is indexed by address. NULL is an address too: here other names occupy its place. */
Test(refusals, a_null_name_in_an_event_is_refused_whatever_the_name_cache_holds)
{
    enum { NAMES = 20000 };
    weir_stream *stream = weir_get_stream("g");
    static char names[NAMES][16];
    cr_assert_eq(weir_configure("*", "null", NULL), 0);
    for (int i = 0; i < NAMES; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        cr_assert_eq(weir_add_value(stream, names[i], 1), 0);
    }
    weir_value values[] = {{"n1", 1}, {NULL, 2}};
    cr_assert_eq(weir_emit(stream, values, 2), WEIR_ERR_NAME);
    cr_assert(strstr(weir_last_error(), "NULL"), "%s", weir_last_error());
    cr_assert_eq(refused(WEIR_REFUSED_NAME), 2, "an event is refused as a whole");
    cr_assert_eq(weir_flush(-1), 0);
    assert_ledger("null");
}

Test(refusals, beyond_max_series_values_go_to_the_groups_overflow_series_and_totals_are_kept)
{
    static const char config[] = "{\"settings\":{\"max_series\":50},\"groups\":{\"*\":\"capture\"}}";
    cr_assert_eq(weir_configure_text(config, sizeof config - 1), 0, "%s", weir_last_error());
    weir_stream *stream = weir_get_stream("g");
    char name[32];
    double sum = 0;
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "n%d", i);
        cr_assert_eq(weir_add_value(stream, name, i), 0);
    }
    weir_label label = {"k", "new"};
    cr_assert_eq(weir_add_value(weir_get_stream_labeled("g", &label, 1), "any", 1000), 0);
    cr_assert_eq(weir_add_value(weir_get_stream("another"), "x", 1), WEIR_ERR_LIMIT);
    weir_flush(-1);
    cr_assert_eq(capture_count(), 201);
    size_t overflow = 0;
    for (size_t i = 0; i < 201; i++) {
        sum += capture_at(i)->value;
        overflow += strcmp(capture_at(i)->name, "weir_overflow") == 0;
    }
    cr_assert_eq(sum, 199 * 100 + 1000);
    cr_assert_gt(overflow, 100);
    cr_assert_eq(refused(WEIR_REFUSED_LIMIT), 1);
    assert_ledger("capture");
}

static void count_overflow_words(void *ctx, int level, const char *text)
{
    int *count = ctx;
    *count +=
        level == WEIR_LOG_WARNING && strstr(text, "settings.max_series (5) is reached, first by group \"g\"");
}

/* Reached by a stream without labels, whose names and overflow series belong to one stream, and by a metric
 * handle. */
Test(refusals, reaching_max_series_is_logged_once_in_every_way)
{
    static const char config[] = "{\"settings\":{\"max_series\":5},\"groups\":{\"*\":\"capture\"}}";
    int limit_messages = 0;
    weir_set_log(count_overflow_words, &limit_messages);
    cr_assert_eq(weir_configure_text(config, sizeof config - 1), 0, "%s", weir_last_error());
    weir_stream *stream = weir_get_stream("g");
    char name[32];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "n%d", i);
        cr_assert_eq(weir_metric_add(weir_get_metric(stream, name), i), 0);
    }
    cr_assert_eq(limit_messages, 0, "a group and four names fit");
    cr_assert_eq(weir_metric_add(weir_get_metric(stream, "one more"), 4), 0);
    cr_assert_eq(limit_messages, 1);
    cr_assert_eq(weir_add_value(stream, "and one more", 5), 0);
    cr_assert_eq(limit_messages, 1);
    weir_flush(-1);
    cr_assert_eq(capture_count(), 6);
    assert_ledger("capture");
}

Test(refusals, values_by_name_beyond_max_series_are_logged_too)
{
    static const char config[] = "{\"settings\":{\"max_series\":5},\"groups\":{\"*\":\"capture\"}}";
    int limit_messages = 0;
    weir_set_log(count_overflow_words, &limit_messages);
    cr_assert_eq(weir_configure_text(config, sizeof config - 1), 0, "%s", weir_last_error());
    char name[32];
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "n%d", i);
        cr_assert_eq(weir_add_value(weir_get_stream("g"), name, i), 0);
    }
    cr_assert_eq(limit_messages, 1);
    weir_flush(-1);
    cr_assert_eq(capture_count(), 9);
    assert_ledger("capture");
}

/* The second label set takes the last place, so that the third one has none for itself. */
Test(refusals, label_sets_beyond_max_series_are_logged_too)
{
    static const char config[] = "{\"settings\":{\"max_series\":5},\"groups\":{\"*\":\"capture\"}}";
    int limit_messages = 0;
    weir_set_log(count_overflow_words, &limit_messages);
    cr_assert_eq(weir_configure_text(config, sizeof config - 1), 0, "%s", weir_last_error());
    char value[32];
    const weir_label label = {"k", value};
    for (int i = 0; i < 9; i++) {
        snprintf(value, sizeof value, "v%d", i);
        cr_assert_eq(weir_add_value_labeled(weir_get_stream("g"), "n", i, &label, 1), 0);
        cr_assert_eq(limit_messages, i >= 2, "after label set %d", i);
    }
    weir_flush(-1);
    cr_assert_eq(capture_count(), 9);
    assert_ledger("capture");
}

Test(refusals, errors_have_a_text_and_unknown_ones_too)
{
    for (int error = 0; error >= WEIR_ERR_FIFO_NOT_CREATED; error--)
        cr_assert(strlen(weir_strerror(error)) > 5 && strcmp(weir_strerror(error), "unknown error") != 0);
    cr_assert_str_eq(weir_strerror(-1000), "unknown error");
    cr_assert_str_eq(weir_strerror(1), "unknown error");
    cr_assert_str_eq(weir_version(), WEIR_VERSION);
}
