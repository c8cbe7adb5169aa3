/* levels: what gauges with `merge` are, of the levels that several processes hand over. */

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "registry/family.h"
#include "registry/metric_rules.h"
#include "registry/reuse.h"
#include "registry/series.h"
#include "registry/stream.h"
#include "source/levels.h"
#include "text/error.h"

static struct wr_registry registry;
static struct wr_levels levels;
static struct wr_metric_rule items[3];
static struct wr_metric_rules rules;
static struct weir_metric *open_count, *peak, *other;
static struct wr_levels_sender *a, *b;

static void set_rule(size_t number, const char *name, enum wr_merge merge)
{
    items[number] = (struct wr_metric_rule){.group = "g",
                                            .pattern = name,
                                            .has_instrument = true,
                                            .meaning = {.instrument = WEIR_GAUGE, .merge = merge}};
}

static void use_rules(void)
{
    wr_metric_rules_fini(&rules);
    rules = (struct wr_metric_rules){.items = items, .count = 3, .max_series_per_name = 2000};
    cr_assert(wr_metric_rules_index(&rules));
    wr_family_set_rules(&registry, &rules);
}

static struct weir_metric *get(const char *name)
{
    struct wr_error error;
    return wr_series_get(&registry, wr_stream_get(&registry, "g", NULL, 0, &error), name, 0, &error);
}

static void init(void)
{
    cr_assert(wr_registry_init(&registry));
    set_rule(0, "open", WR_MERGE_SUM);
    set_rule(1, "peak", WR_MERGE_MAX);
    set_rule(2, "other", WR_MERGE_LAST);
    use_rules();
    open_count = get("open");
    peak = get("peak");
    other = get("other");
    a = wr_levels_enter(&levels, "a");
    b = wr_levels_enter(&levels, "b");
}

static void fini(void)
{
    wr_metric_rules_fini(&rules);
}

TestSuite(levels, .init = init, .fini = fini);

static double merge(struct wr_levels_sender *sender, struct weir_metric *metric, double level)
{
    return wr_levels_merge(&levels, sender, metric, level);
}

/* Returns the level that is to be published of a series; NaN: none is. */
static double published(const struct weir_metric *metric)
{
    double level, found = NAN;
    for (const struct weir_metric *next; (next = wr_levels_next(&levels, &level)); wr_levels_published(&levels))
        if (next == metric)
            found = level;
    return found;
}

Test(levels, a_sum_is_of_the_last_level_of_each_sender)
{
    cr_assert_eq(merge(a, open_count, 3), 3);
    cr_assert_eq(merge(b, open_count, 4), 7);
    cr_assert_eq(merge(a, open_count, 1), 5);
    cr_assert_eq(merge(a, open_count, 1), 5, "the same again");
    cr_assert_eq(merge(b, open_count, 0), 1);
    cr_assert(isnan(published(open_count)), "what is merged goes with the value that has come");
}

Test(levels, a_maximum_is_the_largest_of_the_last_levels)
{
    cr_assert_eq(merge(a, peak, -3), -3);
    cr_assert_eq(merge(b, peak, -5), -3);
    cr_assert_eq(merge(b, peak, 9), 9);
    cr_assert_eq(merge(b, peak, -9), -3);
}

Test(levels, other_gauges_and_levels_that_are_no_numbers_stay_as_they_are)
{
    cr_assert_eq(merge(a, other, 3), 3);
    cr_assert_eq(merge(b, other, 4), 4);
    cr_assert_eq(merge(a, open_count, 3), 3);
    cr_assert(isnan(merge(b, open_count, NAN)));
    cr_assert(isinf(merge(b, open_count, INFINITY)));
    cr_assert_eq(merge(b, open_count, 1), 4);
    wr_levels_leave(&levels, a);
    wr_levels_leave(&levels, b);
    cr_assert(isnan(published(other)));
}

Test(levels, a_sender_that_leaves_takes_its_levels_away)
{
    merge(a, open_count, 3), merge(b, open_count, 4);
    merge(a, peak, 8), merge(b, peak, 2);
    wr_levels_leave(&levels, a);
    cr_assert_eq(published(open_count), 4);
    cr_assert(isnan(published(open_count)), "once");
    cr_assert_eq(merge(b, peak, 1), 1);
    wr_levels_leave(&levels, b);
    cr_assert_eq(published(open_count), 0);
    cr_assert_eq(merge(wr_levels_enter(&levels, "c"), peak, -7), -7, "a maximum of nothing is no level");
}

Test(levels, a_sender_that_comes_back_has_its_levels_again)
{
    merge(a, open_count, 3), merge(b, open_count, 4);
    wr_levels_leave(&levels, a);
    a = wr_levels_enter(&levels, "a");
    cr_assert_eq(published(open_count), 7);
    cr_assert_eq(merge(a, open_count, 5), 9, "and counts once");
}

Test(levels, fractions_leave_nothing_behind)
{
    for (int i = 0; i < 1000; i++)
        merge(a, open_count, 0.1 * i), merge(b, open_count, 1e15 / (i + 1));
    wr_levels_leave(&levels, a);
    wr_levels_leave(&levels, b);
    cr_assert_eq(published(open_count), 0);
}

Test(levels, a_small_level_survives_beside_a_large_one)
{
    merge(a, open_count, 1), merge(b, open_count, 1e17);
    cr_assert_eq(merge(b, open_count, 0), 1);
    merge(a, open_count, 0.1), merge(b, open_count, 0.2);
    merge(a, open_count, 0.7), merge(b, open_count, 0.3);
    merge(a, open_count, 0);
    cr_assert_eq(merge(b, open_count, 0), 0);
}

Test(levels, many_senders_and_series_are_kept_apart)
{
    enum { SENDERS = 200 };
    struct wr_levels_sender *senders[SENDERS];
    for (int i = 0; i < SENDERS; i++) {
        char id[16];
        snprintf(id, sizeof id, "s%d", i);
        senders[i] = wr_levels_enter(&levels, id);
        merge(senders[i], open_count, 1);
        merge(senders[i], peak, i);
    }
    cr_assert_eq(merge(senders[0], open_count, 2), SENDERS + 1);
    for (int i = SENDERS - 1; i > 0; i--) {
        wr_levels_leave(&levels, senders[i]);
        cr_assert_eq(merge(senders[0], open_count, 1), i);
        cr_assert_eq(merge(senders[0], peak, 0), i - 1);
    }
}

/* Each with one series: the table forgets them, and lets go of the label sets. */
Test(levels, only_the_last_thousand_that_left_are_remembered)
{
    for (int i = 0; i < 3000; i++) {
        char id[16];
        snprintf(id, sizeof id, "s%d", i);
        struct wr_levels_sender *sender = wr_levels_enter(&levels, id);
        merge(sender, open_count, 1);
        wr_levels_leave(&levels, sender);
    }
    cr_assert_eq(levels.share_count, 1000);
    cr_assert_eq(published(open_count), 0);
    struct wr_levels_sender *back = wr_levels_enter(&levels, "s2999");
    cr_assert_eq(published(open_count), 1);
    struct wr_levels_sender *forgotten = wr_levels_enter(&levels, "s1000");
    cr_assert(isnan(published(open_count)), "it was forgotten");
    cr_assert_eq(atomic_load(&open_count->stream->holders), 1);
    wr_levels_leave(&levels, forgotten);
    wr_levels_leave(&levels, back);
}

Test(levels, a_configuration_changes_how_a_gauge_merges)
{
    merge(a, open_count, 3), merge(b, open_count, 4);
    set_rule(0, "open", WR_MERGE_MAX);
    use_rules();
    cr_assert_eq(merge(a, open_count, 2), 4);
    set_rule(0, "open", WR_MERGE_LAST);
    use_rules();
    cr_assert_eq(merge(a, open_count, 9), 9);
    wr_levels_leave(&levels, b);
    cr_assert(isnan(published(open_count)));
    set_rule(0, "open", WR_MERGE_SUM);
    use_rules();
    cr_assert_eq(merge(a, open_count, 5), 5);
    b = wr_levels_enter(&levels, "b");
    cr_assert_eq(published(open_count), 9);
}

Test(levels, what_waits_to_be_published_is_left_out_when_it_merges_no_more)
{
    merge(a, open_count, 3), merge(a, peak, 4);
    wr_levels_leave(&levels, a);
    items[0].meaning = (struct wr_meaning){.instrument = WEIR_COUNTER};
    use_rules();
    double level;
    cr_assert_eq(wr_levels_next(&levels, &level), peak);
    cr_assert_eq(level, 4);
    wr_levels_published(&levels);
    cr_assert_null(wr_levels_next(&levels, &level));
    a = wr_levels_enter(&levels, "a");
    cr_assert_eq(published(peak), 4);
}

Test(levels, what_is_sent_while_a_gauge_does_not_merge_counts_when_it_does_again)
{
    merge(a, open_count, 5), merge(b, open_count, 7);
    set_rule(0, "open", WR_MERGE_LAST);
    use_rules();
    cr_assert_eq(merge(a, open_count, 1), 1);
    set_rule(0, "open", WR_MERGE_SUM);
    use_rules();
    cr_assert_eq(merge(b, open_count, 8), 9);
}
