/* Groups, streams and series: each is interned once and never freed. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "text/common.h"
#include "text/error.h"
#include "registry/family.h"
#include "registry/registry.h"
#include "registry/series.h"
#include "registry/stream.h"

static struct wr_registry registry;
static struct wr_error error;

static void setup(void)
{
    cr_assert(wr_registry_init(&registry));
}

TestSuite(registry, .init = setup);

static struct weir_stream *stream_of(const char *group)
{
    return wr_stream_get(&registry, group, NULL, 0, &error);
}

static struct weir_stream *labeled(const char *group, const weir_label *labels, size_t count)
{
    return wr_stream_get(&registry, group, labels, count, &error);
}

static struct weir_metric *metric_of(struct weir_stream *stream, const char *name)
{
    return wr_series_get(&registry, stream, name, 0, &error);
}

static struct weir_metric *total_of(struct weir_stream *stream, const char *name)
{
    return wr_series_get(&registry, stream, name, WEIR_SAMPLE_CUMULATIVE, &error);
}

/* ---- Streams --------------------------------------------------------------------------------- */

Test(registry, a_group_has_one_stream)
{
    struct weir_stream *stream = stream_of("my_app");
    cr_assert_eq(stream->refusal, 0);
    cr_assert_str_eq(stream->group->name, "my_app");
    cr_assert_eq(stream_of("my_app"), stream);
    cr_assert_neq(stream_of("my_app.db"), stream);
}

Test(registry, groups_are_found_by_their_text_not_by_its_address)
{
    char text[] = "my_app";
    struct weir_stream *stream = stream_of(text);
    text[0] = 'x';
    cr_assert_str_eq(stream->group->name, "my_app");
    cr_assert_eq(stream_of("my_app"), stream);
    cr_assert_neq(stream_of(text), stream);
}

Test(registry, a_new_group_is_cold)
{
    cr_assert_eq(stream_of("my_app")->group->gate, WR_GATE_COLD);
}

Test(registry, the_order_of_labels_does_not_matter)
{
    const weir_label ab[] = {{"a", "1"}, {"b", "2"}, {"c", "3"}};
    const weir_label ba[] = {{"c", "3"}, {"b", "2"}, {"a", "1"}};
    struct weir_stream *stream = labeled("g", ab, 3);
    cr_assert_eq(labeled("g", ba, 3), stream);
    cr_assert_eq(stream->label_count, 3);
    cr_assert_str_eq(stream->labels[0].key, "a");
    cr_assert_str_eq(stream->labels[2].value, "3");
}

Test(registry, different_labels_make_different_streams)
{
    const weir_label one[] = {{"a", "1"}}, two[] = {{"a", "2"}}, other[] = {{"b", "1"}};
    struct weir_stream *stream = labeled("g", one, 1);
    cr_assert_neq(labeled("g", two, 1), stream);
    cr_assert_neq(labeled("g", other, 1), stream);
    cr_assert_neq(labeled("h", one, 1), stream);
    cr_assert_neq(stream_of("g"), stream);
    cr_assert_eq(labeled("g", one, 1), stream);
}

Test(registry, the_boundary_between_key_and_value_matters)
{
    const weir_label left[] = {{"ab", "c"}}, right[] = {{"a", "bc"}};
    cr_assert_neq(labeled("g", left, 1), labeled("g", right, 1));
}

Test(registry, labels_are_copied)
{
    char key[] = "key", value[] = "value";
    const weir_label label = {key, value};
    struct weir_stream *stream = labeled("g", &label, 1);
    memset(key, 'x', 3);
    memset(value, 'x', 5);
    cr_assert_str_eq(stream->labels[0].key, "key");
    cr_assert_str_eq(stream->labels[0].value, "value");
}

Test(registry, a_label_count_of_zero_is_the_stream_without_labels)
{
    const weir_label label = {"a", "1"};
    cr_assert_eq(labeled("g", &label, 0), stream_of("g"));
}

static void assert_refused(const struct weir_stream *stream, const char *words)
{
    cr_assert_eq(stream->refusal, WEIR_ERR_NAME);
    cr_assert_eq(error.code, WEIR_ERR_NAME);
    cr_assert(strstr(error.text, words), "\"%s\" does not say \"%s\"", error.text, words);
}

Test(registry, what_comes_through_a_source_has_streams_of_its_own)
{
    const weir_label label = {"a", "1"};
    const struct wr_stream_key key = {NULL, &label, 1, true, NULL};
    struct weir_stream *own = labeled("g", &label, 1);
    struct weir_stream *foreign = wr_stream_get_for(&registry, "g", &key, &error);
    cr_assert_neq(own, foreign);
    cr_assert_eq(own->group, foreign->group);
    cr_assert_eq(wr_stream_get_for(&registry, "g", &key, &error), foreign);
    cr_assert_eq(labeled("g", &label, 1), own);
    cr_assert_not(metric_of(own, "n")->view->foreign);
    cr_assert(metric_of(foreign, "n")->view->foreign);
    cr_assert_neq(metric_of(foreign, "n"), metric_of(own, "n"));
}

Test(registry, a_stream_with_more_labels_is_foreign_as_its_base_is)
{
    const weir_label label = {"a", "1"}, le = {"le", "5"};
    struct weir_stream *base =
        wr_stream_get_for(&registry, "g", &(struct wr_stream_key){.is_foreign = true}, &error);
    struct weir_stream *more = wr_stream_get_labeled(&registry, base, &label, 1, NULL, &error);
    cr_assert(more->is_foreign);
    cr_assert_eq(wr_stream_find_labeled(&registry, base, &label, 1), more);
    cr_assert_null(wr_stream_find_labeled(&registry, stream_of("g"), &label, 1));
    cr_assert(wr_stream_derive(&registry, base, &le, "x.bucket")->is_foreign);
}

Test(registry, duplicate_keys_are_refused)
{
    const weir_label labels[] = {{"a", "1"}, {"b", "2"}, {"a", "3"}};
    assert_refused(labeled("g", labels, 3), "\"a\": given twice");
}

Test(registry, up_to_64_labels_are_allowed)
{
    weir_label labels[65];
    char keys[65][16];
    for (int i = 0; i < 65; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        labels[i] = (weir_label){keys[i], ""};
    }
    cr_assert_eq(labeled("g", labels, 64)->refusal, 0);
    assert_refused(labeled("g", labels, 65), "65 of them; 0 to 64 are allowed");
}

Test(registry, invalid_labels_are_refused)
{
    char long_text[1025];
    memset(long_text, 'x', sizeof long_text);
    long_text[1024] = '\0';
    const weir_label none = {NULL, "v"}, empty = {"", "v"}, control = {"a\n", "v"}, no_value = {"a", NULL},
                     invalid = {"a", "\xff"}, too_long = {"a", long_text};
    assert_refused(labeled("g", &none, 1), "NULL");
    assert_refused(labeled("g", &empty, 1), "empty");
    assert_refused(labeled("g", &control, 1), "control character");
    assert_refused(labeled("g", &no_value, 1), "NULL");
    assert_refused(labeled("g", &invalid, 1), "invalid UTF-8");
    assert_refused(labeled("g", &too_long, 1), "too long");
    assert_refused(labeled("g", NULL, 1), "labels");
    long_text[1023] = '\0';
    cr_assert_eq(labeled("g", &too_long, 1)->refusal, 0);
}

Test(registry, values_of_labels_may_be_empty_and_hold_control_characters)
{
    const weir_label labels[] = {{"empty", ""}, {"lines", "one\ntwo"}};
    cr_assert_eq(labeled("g", labels, 2)->refusal, 0);
}

Test(registry, invalid_group_names_are_refused)
{
    char name[257];
    memset(name, 'x', sizeof name);
    name[256] = '\0';
    assert_refused(stream_of(name), "too long");
    name[255] = '\0';
    cr_assert_eq(stream_of(name)->refusal, 0);
    assert_refused(stream_of(NULL), "NULL");
    assert_refused(stream_of(""), "empty");
    assert_refused(stream_of("*"), "'*'");
    assert_refused(stream_of("a.*"), "'*'");
    assert_refused(stream_of(".a"), "empty part");
    assert_refused(stream_of("a."), "empty part");
    assert_refused(stream_of("a..b"), "empty part");
    assert_refused(stream_of("."), "empty part");
    assert_refused(stream_of("a\tb"), "control character");
    assert_refused(stream_of("a\xc3"), "invalid UTF-8");
}

/* ---- Series ---------------------------------------------------------------------------------- */

Test(registry, a_name_in_a_stream_has_one_series)
{
    struct weir_stream *stream = stream_of("g");
    struct weir_metric *metric = metric_of(stream, "latency");
    cr_assert_eq(metric_of(stream, "latency"), metric);
    cr_assert_neq(metric_of(stream, "latency2"), metric);
    cr_assert_neq(metric_of(stream_of("h"), "latency"), metric);
    cr_assert_eq(metric->gate, &stream->group->gate);
}

Test(registry, a_cumulative_series_is_a_different_series)
{
    struct weir_stream *stream = stream_of("g");
    struct weir_metric *metric = metric_of(stream, "n"), *total = total_of(stream, "n");
    cr_assert_neq(metric, total);
    cr_assert_eq(total_of(stream, "n"), total);
    cr_assert_eq(total->flags, WEIR_SAMPLE_CUMULATIVE);
    cr_assert(total->view->cumulative);
    cr_assert_not(metric->view->cumulative);
}

Test(registry, handlers_see_all_properties_of_a_series)
{
    const weir_label labels[] = {{"route", "/x"}};
    const weir_series *view = metric_of(labeled("g", labels, 1), "n")->view;
    cr_assert_eq(view->size, sizeof *view);
    cr_assert_str_eq(view->group, "g");
    cr_assert_str_eq(view->name, "n");
    cr_assert_eq(view->label_count, 1);
    cr_assert_str_eq(view->labels[0].value, "/x");
    cr_assert_null(view->unit);
    cr_assert_null(view->help);
}

Test(registry, ids_are_dense_and_find_their_series)
{
    enum { SERIES = 8000 }; /* more than the first three chunks hold */
    static struct weir_metric *metrics[SERIES];
    struct weir_stream *stream = stream_of("g");
    char name[20];
    for (uint32_t i = 0; i < SERIES; i++) {
        snprintf(name, sizeof name, "n%u", i);
        metrics[i] = metric_of(stream, name);
        cr_assert_eq(metrics[i]->series, i);
        cr_assert_eq(metrics[i]->view->id, i);
    }
    cr_assert_eq(registry.series, SERIES);
    for (uint32_t i = 0; i < SERIES; i++) {
        snprintf(name, sizeof name, "n%u", i);
        cr_assert_eq(wr_registry_series(&registry, i), metrics[i]);
        cr_assert_eq(metric_of(stream, name), metrics[i]);
    }
}

Test(registry, invalid_series_names_are_refused)
{
    struct weir_stream *stream = stream_of("g");
    char name[257];
    memset(name, 'x', sizeof name);
    name[256] = '\0';
    cr_assert_eq(metric_of(stream, name), registry.bad_name_metric);
    name[255] = '\0';
    cr_assert_eq(metric_of(stream, name)->stream, stream);
    cr_assert_eq(metric_of(stream, NULL), registry.bad_name_metric);
    cr_assert_eq(metric_of(stream, ""), registry.bad_name_metric);
    cr_assert_eq(metric_of(stream, "a\x7f"), registry.bad_name_metric);
    cr_assert_eq(metric_of(stream, "\xc0\x80"), registry.bad_name_metric);
    cr_assert_eq(metric_of(stream, "a*b..c")->stream, stream);
}

Test(registry, a_stream_with_a_bad_name_says_what_is_bad_whenever_it_is_used)
{
    struct weir_stream *stars = stream_of("a.*"), *dots = stream_of("a..b");
    cr_assert_neq(stars, dots);
    cr_assert_eq(stream_of("a.*"), stars);
    metric_of(dots, "n");
    cr_assert_str_eq(error.text, "the stream refuses all values: group \"a..b\": empty part; a group is one or "
                                 "more names separated by single dots");
    metric_of(stars, "n");
    cr_assert_str_eq(error.text, "the stream refuses all values: group \"a.*\": a group must not contain '*'");
}

Test(registry, the_number_of_bad_names_that_are_remembered_is_bounded)
{
    char name[20];
    for (int i = 0; i < 2 * WR_REGISTRY_REFUSED; i++) {
        snprintf(name, sizeof name, "*%d", i);
        cr_assert_eq(stream_of(name)->refusal, WEIR_ERR_NAME);
    }
    cr_assert_eq(stream_of(name), &registry.bad_name);
    metric_of(&registry.bad_name, "n");
    cr_assert_str_eq(error.text, "the stream refuses all values: a name is not valid");
}

Test(registry, series_of_a_refusing_stream_refuse)
{
    struct weir_metric *metric = metric_of(stream_of("*"), "n");
    cr_assert_eq(metric, registry.bad_name_metric);
    cr_assert_eq(*metric->gate, WR_GATE_REFUSE);
    cr_assert_eq(error.code, WEIR_ERR_NAME);
    cr_assert(strstr(error.text, "refuses all values"));
}

Test(registry, without_memory_the_registry_refuses_everything)
{
    struct wr_registry *nothing = wr_registry_refusing();
    cr_assert_eq(nothing->no_memory.refusal, WEIR_ERR_MEMORY);
    cr_assert_eq(wr_series_get(nothing, &nothing->no_memory, "n", 0, &error), nothing->no_memory_metric);
    cr_assert_eq(*nothing->no_memory_metric->gate, WR_GATE_REFUSE);
    cr_assert_eq(error.code, WEIR_ERR_MEMORY);
}

/* ---- Descriptions ---------------------------------------------------------------------------- */

static int describe(struct weir_stream *stream, const char *name, const char *unit, const char *help)
{
    return wr_family_describe(&registry, stream, name, unit, help, &error);
}

Test(registry, a_description_is_visible_once_set)
{
    struct weir_stream *stream = stream_of("g");
    struct weir_metric *metric = metric_of(stream, "n");
    const weir_series *before = metric->view;
    cr_assert_eq(describe(stream, "n", "ms", "how long it took"), 0);
    cr_assert_str_eq(metric->view->unit, "ms");
    cr_assert_str_eq(metric->view->help, "how long it took");
    cr_assert_null(before->unit, "a description held by a handler does not change");
}

Test(registry, the_latest_description_takes_precedence)
{
    struct weir_stream *stream = stream_of("g");
    describe(stream, "n", "ms", "help");
    cr_assert_eq(describe(stream, "n", "s", NULL), 0);
    cr_assert_str_eq(metric_of(stream, "n")->view->unit, "s");
    cr_assert_null(metric_of(stream, "n")->view->help);
}

Test(registry, an_unchanged_description_allocates_nothing)
{
    struct weir_stream *stream = stream_of("g");
    describe(stream, "n", "ms", NULL);
    const weir_series *view = metric_of(stream, "n")->view;
    describe(stream, "n", "ms", NULL);
    cr_assert_eq(metric_of(stream, "n")->view, view);
}

Test(registry, memory_for_changing_descriptions_is_bounded)
{
    struct weir_stream *stream = stream_of("g");
    total_of(stream, "n");
    for (int i = 0; i < WR_FAMILY_PROGRAM_CHANGES_MAX; i++)
        cr_assert_eq(describe(stream, "n", i % 2 ? "ms" : "s", "help"), 0);
    const struct wr_arena views = registry.views, texts = registry.arena;
    for (int i = 0; i < 10000; i++)
        cr_assert_eq(describe(stream, "n", i % 2 ? "ms" : "s", "help"), i % 2 ? 0 : WEIR_ERR_LIMIT);
    cr_assert_str_eq(error.text, "name \"n\": its description was changed 16 times, the maximum");
    cr_assert_eq(registry.views.next, views.next);
    cr_assert_eq(registry.arena.next, texts.next);
    cr_assert_str_eq(metric_of(stream, "n")->view->unit, "ms", "the last one is kept");
    cr_assert_str_eq(total_of(stream, "n")->view->unit, "ms");
}

Test(registry, a_description_applies_to_both_kinds_of_series)
{
    struct weir_stream *stream = stream_of("g");
    struct weir_metric *before = total_of(stream, "early");
    describe(stream, "early", "bytes", NULL);
    cr_assert_str_eq(before->view->unit, "bytes");
    cr_assert(before->view->cumulative);
    describe(stream, "late", "bytes", NULL);
    cr_assert_str_eq(total_of(stream, "late")->view->unit, "bytes");
}

Test(registry, invalid_descriptions_are_refused)
{
    struct weir_stream *stream = stream_of("g");
    char text[1025];
    memset(text, 'x', sizeof text);
    text[1024] = '\0';
    cr_assert_eq(describe(stream, "n", NULL, text), WEIR_ERR_NAME);
    cr_assert_eq(describe(stream, "n", NULL, text + 1), 0);
    text[64] = '\0';
    cr_assert_eq(describe(stream, "n", text, NULL), WEIR_ERR_NAME);
    cr_assert_eq(describe(stream, "n", text + 1, NULL), 0);
    cr_assert_eq(describe(stream, "n", "\xff", NULL), WEIR_ERR_NAME);
    cr_assert_eq(describe(stream, "", "ms", NULL), WEIR_ERR_NAME);
    cr_assert_eq(describe(stream_of("*"), "n", "ms", NULL), WEIR_ERR_NAME);
}

/* ---- Fork ------------------------------------------------------------------------------------ */

Test(registry, after_a_fork_all_gates_are_cold_and_the_lock_is_free)
{
    struct wr_group *group = stream_of("g")->group, *other = stream_of("h")->group;
    group->gate = WR_GATE_WAIT;
    group->waiters = 3;
    group->route = 7;
    other->gate = WR_GATE_OPEN;
    wr_lock_enter(&registry.lock);
    wr_registry_after_fork(&registry);
    cr_assert_eq(group->gate, WR_GATE_COLD);
    cr_assert_eq(group->waiters, 0);
    cr_assert_eq(group->route, 0);
    cr_assert_eq(other->gate, WR_GATE_COLD);
    cr_assert(wr_lock_enter_by(&registry.lock, 0));
    cr_assert_eq(registry.refusing_group->gate, WR_GATE_REFUSE);
}

/* ---- Many threads ---------------------------------------------------------------------------- */

enum { THREADS = 8, NAMES = 300 };

struct lookup_thread {
    pthread_t thread;
    struct weir_metric *found[NAMES];
};

static void *look_up_all(void *argument)
{
    struct lookup_thread *lookup_thread = argument;
    struct wr_error mine;
    char name[20];
    for (int i = 0; i < NAMES; i++) {
        const weir_label label = {"part", i % 2 ? "odd" : "even"};
        struct weir_stream *stream = wr_stream_get(&registry, "g", &label, 1, &mine);
        snprintf(name, sizeof name, "n%d", i);
        lookup_thread->found[i] = wr_series_get(&registry, stream, name, 0, &mine);
    }
    return NULL;
}

Test(registry, all_threads_find_the_same_series, .timeout = 60)
{
    static struct lookup_thread lookers[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&lookers[i].thread, NULL, look_up_all, &lookers[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(lookers[i].thread, NULL);
    for (int i = 1; i < THREADS; i++)
        cr_assert_arr_eq(lookers[i].found, lookers[0].found, sizeof lookers[0].found);
    cr_assert_eq(registry.series, NAMES);
    cr_assert_eq(registry.count, 1 + 2 + NAMES);
}
