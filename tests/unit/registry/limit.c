/* Beyond settings.max_series: the overflow series of each group, and groups that are refused. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "text/error.h"
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

Test(limit, every_name_of_the_overflow_stream_is_the_overflow_series)
{
    const weir_label label = {"a", "1"};
    struct weir_stream *overflow = wr_stream_get(&registry, "g", &label, 1, &error);
    cr_assert_eq(get(overflow, "known"), get(stream, "new"));
    cr_assert_eq(get(overflow, "new"), get(stream, "new"));
}

Test(limit, an_overflow_stream_stays_one_after_the_limit_is_raised)
{
    const weir_label label = {"a", "1"};
    struct weir_stream *overflow = wr_stream_get(&registry, "g", &label, 1, &error);
    registry.max = 100;
    cr_assert_eq(get(overflow, "new"), get(overflow, "newer"));
    cr_assert_str_eq(get(overflow, "new")->name, "weir_overflow");
}

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

Test(limit, the_overflow_series_cannot_be_described)
{
    cr_assert_eq(wr_series_describe(&registry, stream, "new", "ms", NULL, &error), WEIR_ERR_LIMIT);
    cr_assert_null(get(stream, "new")->view->unit);
    cr_assert_eq(wr_series_describe(&registry, stream, "known", "ms", NULL, &error), 0);
}

Test(limit, a_series_named_weir_overflow_is_the_overflow_series)
{
    registry.max = 5;
    struct weir_metric *metric = get(stream, "weir_overflow");
    cr_assert_eq(get(stream, "new"), metric);
}
