/* Beyond settings.max_series: the overflow series of each group, and groups that are refused. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "text/error.h"
#include "registry/family.h"
#include "registry/metric_rules.h"
#include "registry/registry.h"
#include "registry/series.h"
#include "registry/stream.h"

static struct wr_registry registry;
static struct wr_error error;
static struct weir_stream *stream, *other;

/* Two groups with one series each fill the registry: 4 entries. */
static void setup(void)
{
    cr_assert(wr_registry_init(&registry));
    registry.max = 4;
    stream = wr_stream_get(&registry, "g", NULL, 0, &error);
    other = wr_stream_get(&registry, "h", NULL, 0, &error);
    wr_series_get(&registry, stream, "known", 0, &error);
    cr_assert_not(wr_registry_is_full(&registry));
    wr_series_get(&registry, other, "known", 0, &error);
    cr_assert(wr_registry_is_full(&registry));
    cr_assert_eq(registry.count, 4);
}

TestSuite(limit, .init = setup);

static struct weir_metric *get(struct weir_stream *of, const char *name)
{
    error.code = 0;
    return wr_series_get(&registry, of, name, 0, &error);
}

Test(limit, known_names_are_still_found)
{
    cr_assert_str_eq(get(stream, "known")->name, "known");
    cr_assert_eq(wr_stream_get(&registry, "g", NULL, 0, &error), stream);
}

Test(limit, further_names_share_the_overflow_series_of_their_group)
{
    struct weir_metric *metric = get(stream, "new");
    cr_assert_eq(error.code, 0, "their values are counted");
    cr_assert_str_eq(metric->name, "weir_overflow");
    cr_assert_eq(metric->stream, stream);
    cr_assert_eq(get(stream, "newer"), metric);
    cr_assert_eq(wr_series_get(&registry, stream, "new", WEIR_SAMPLE_CUMULATIVE, &error), metric);
}

Test(limit, each_group_has_an_overflow_series_of_its_own)
{
    cr_assert_neq(get(stream, "new"), get(other, "new"));
    cr_assert_str_eq(get(other, "new")->view->group, "h");
}

Test(limit, overflow_series_are_not_counted)
{
    get(stream, "new");
    get(other, "new");
    cr_assert_eq(registry.count, 4);
    cr_assert_eq(registry.series, 4);
}

Test(limit, the_first_group_beyond_the_limit_is_recorded)
{
    cr_assert_null(registry.first_overflow);
    get(other, "new");
    get(stream, "new");
    cr_assert_eq(registry.first_overflow, other->group);
}

Test(limit, invalid_names_are_still_refused)
{
    cr_assert_eq(get(stream, "bad\n"), registry.bad_name_metric);
    cr_assert_eq(error.code, WEIR_ERR_NAME);
}

Test(limit, further_label_sets_share_the_overflow_stream_of_their_group)
{
    const weir_label one[] = {{"a", "1"}}, two[] = {{"a", "2"}};
    struct weir_stream *overflow = wr_stream_get(&registry, "g", one, 1, &error);
    cr_assert_eq(overflow->refusal, 0);
    cr_assert(overflow->overflow);
    cr_assert_eq(overflow->group, stream->group);
    cr_assert_eq(wr_stream_get(&registry, "g", two, 1, &error), overflow);
    cr_assert_neq(wr_stream_get(&registry, "h", one, 1, &error), overflow);
    cr_assert_eq(registry.count, 4);
}

Test(limit, what_comes_through_a_source_overflows_into_series_of_its_own)
{
    const weir_label label = {"a", "1"};
    const struct wr_stream_key key = {NULL, &label, 1, true, NULL};
    struct weir_stream *own = wr_stream_get(&registry, "g", &label, 1, &error);
    struct weir_stream *foreign = wr_stream_get_for(&registry, "g", &key, &error);
    cr_assert(foreign->overflow && foreign->is_foreign && !own->is_foreign);
    cr_assert_neq(get(foreign, "new"), get(own, "new"));
    cr_assert(get(foreign, "new")->view->foreign);
    cr_assert_eq(get(foreign, "newer"), get(foreign, "new"));
    cr_assert_not(get(own, "new")->view->foreign);
}

Test(limit, a_known_name_keeps_its_total_in_the_overflow_stream)
{
    const weir_label label = {"a", "1"};
    struct weir_stream *overflow = wr_stream_get(&registry, "g", &label, 1, &error);
    const struct weir_metric *metric = get(overflow, "known");
    cr_assert_str_eq(metric->name, "known");
    cr_assert_eq(metric->view->label_count, 1);
    cr_assert_str_eq(metric->view->labels[0].key, "weir_overflow");
    cr_assert_str_eq(metric->view->labels[0].value, "true");
    cr_assert_eq(registry.count, 4);
}

Test(limit, a_new_name_of_the_overflow_stream_is_the_overflow_series)
{
    const weir_label label = {"a", "1"};
    struct weir_stream *overflow = wr_stream_get(&registry, "g", &label, 1, &error);
    cr_assert_eq(get(overflow, "new"), get(stream, "new"));
}

Test(limit, an_overflow_stream_stays_one_after_the_limit_is_raised)
{
    const weir_label label = {"a", "1"};
    struct weir_stream *overflow = wr_stream_get(&registry, "g", &label, 1, &error);
    registry.max = 100;
    cr_assert(overflow->overflow);
    cr_assert_eq(get(overflow, "new")->stream, overflow);
}

/* ---- The label sets of one name -------------------------------------------------------------- */

static struct weir_metric *get_labeled(const char *name, const char *value)
{
    const weir_label label = {"user", value};
    error.code = 0;
    return wr_series_get_labeled(&registry, stream, name, 0, &label, 1, &error);
}

static void allow(uint32_t label_sets)
{
    static struct wr_metric_rules rules;
    registry.max = 1000;
    rules.max_series_per_name = label_sets;
    wr_family_set_rules(&registry, &rules);
}

Test(limit, label_sets_beyond_the_limit_of_a_name_share_a_series_of_that_name)
{
    allow(2);
    struct weir_metric *first = get_labeled("requests", "ann"), *second = get_labeled("requests", "bob");
    struct weir_metric *third = get_labeled("requests", "cid");
    cr_assert_neq(first, second);
    cr_assert_str_eq(third->name, "requests");
    cr_assert_str_eq(third->view->labels[0].key, "weir_overflow");
    cr_assert_eq(get_labeled("requests", "dan"), third);
    cr_assert_eq(get_labeled("requests", "ann"), first, "known label sets keep their series");
    cr_assert_str_eq(registry.first_full->name, "requests");
}

Test(limit, running_totals_beyond_the_limit_of_a_name_share_a_series_of_running_totals)
{
    const weir_label bob = {"user", "bob"};
    allow(1);
    get_labeled("requests", "ann");
    const struct weir_metric *total =
        wr_series_get_labeled(&registry, stream, "requests", WEIR_SAMPLE_CUMULATIVE, &bob, 1, &error);
    cr_assert(total->stream->overflow && total->view->cumulative);
    cr_assert_neq(get_labeled("requests", "bob"), total);
}

Test(limit, each_name_has_a_limit_of_its_own)
{
    allow(1);
    get_labeled("requests", "ann");
    cr_assert(get_labeled("requests", "bob")->stream->overflow);
    cr_assert_not(get_labeled("errors", "ann")->stream->overflow);
}

Test(limit, label_sets_beyond_the_limit_of_a_name_take_no_memory)
{
    allow(1);
    get_labeled("requests", "ann");
    get_labeled("requests", "bob");
    uint32_t count = registry.count, series = registry.series;
    for (int i = 0; i < 1000; i++) {
        char user[16];
        snprintf(user, sizeof user, "user%d", i);
        get_labeled("requests", user);
    }
    cr_assert_eq(registry.count, count);
    cr_assert_eq(registry.series, series);
}

Test(limit, the_series_without_labels_does_not_count)
{
    allow(1);
    get(stream, "requests");
    cr_assert_not(get_labeled("requests", "ann")->stream->overflow);
    cr_assert_eq(get(stream, "requests")->stream, stream);
}

Test(limit, streams_with_labels_of_their_own_share_the_series_too)
{
    allow(1);
    get_labeled("requests", "ann");
    const weir_label label = {"user", "bob"};
    struct weir_stream *bob = wr_stream_get(&registry, "g", &label, 1, &error);
    cr_assert_eq(get(bob, "requests"), get_labeled("requests", "cid"));
}

Test(limit, without_a_limit_of_names_only_that_of_the_process_counts)
{
    allow(0);
    get_labeled("requests", "ann");
    cr_assert_not(get_labeled("requests", "bob")->stream->overflow);
}

/* ---- The limit of the process ---------------------------------------------------------------- */

Test(limit, further_groups_are_refused)
{
    struct weir_stream *refused = wr_stream_get(&registry, "i", NULL, 0, &error);
    cr_assert_eq(refused->refusal, WEIR_ERR_LIMIT);
    cr_assert_eq(error.code, WEIR_ERR_LIMIT);
    cr_assert_str_eq(error.text, "group \"i\": settings.max_series (4) is reached");
    cr_assert_eq(get(refused, "n"), registry.over_limit_metric);
    cr_assert_eq(error.code, WEIR_ERR_LIMIT);
}

Test(limit, further_groups_with_labels_are_refused_too)
{
    const weir_label label = {"a", "1"};
    cr_assert_eq(wr_stream_get(&registry, "i", &label, 1, &error)->refusal, WEIR_ERR_LIMIT);
}

Test(limit, raising_the_limit_allows_new_series_again)
{
    get(stream, "new");
    registry.max = 6;
    struct weir_metric *metric = get(stream, "new");
    cr_assert_str_eq(metric->name, "new");
    cr_assert_eq(wr_stream_get(&registry, "i", NULL, 0, &error)->refusal, 0);
    cr_assert_str_eq(get(stream, "newer")->name, "weir_overflow");
}

Test(limit, lowering_the_limit_keeps_existing_series)
{
    registry.max = 1;
    cr_assert_str_eq(get(stream, "known")->name, "known");
    cr_assert_str_eq(get(stream, "new")->name, "weir_overflow");
}

Test(limit, an_invalid_declaration_is_not_counted)
{
    const weir_metric_spec spec = {.instrument = WEIR_COUNTER, .bucket_count = 1};
    registry.max = 5;
    cr_assert_eq(wr_family_declare(&registry, stream, "new", &spec, &error), WEIR_ERR_ARGUMENT);
    cr_assert_eq(registry.count, 4);
}

Test(limit, the_overflow_series_cannot_be_described)
{
    cr_assert_eq(wr_family_describe(&registry, stream, "new", "ms", NULL, &error), WEIR_ERR_LIMIT);
    cr_assert_null(get(stream, "new")->view->unit);
    cr_assert_eq(wr_family_describe(&registry, stream, "known", "ms", NULL, &error), 0);
}

Test(limit, a_series_named_weir_overflow_is_the_overflow_series)
{
    registry.max = 5;
    struct weir_metric *metric = get(stream, "weir_overflow");
    cr_assert_eq(get(stream, "new"), metric);
}
