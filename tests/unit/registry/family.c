/* What names mean: declarations of the program, rules of the configuration. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "producer/gate.h"
#include "producer/instrument.h"
#include "registry/family.h"
#include "registry/metric_rules.h"
#include "registry/prof_names.h"
#include "registry/series.h"
#include "registry/stream.h"
#include "segment/series_codec.h"
#include "text/error.h"

static struct wr_registry registry;
static struct wr_error error;
static struct weir_stream *stream;

static void setup(void)
{
    cr_assert(wr_registry_init(&registry));
    stream = wr_stream_get(&registry, "app.db", NULL, 0, &error);
}

static struct weir_metric *get(const char *name)
{
    return wr_series_get(&registry, stream, name, 0, &error);
}

static int declare(const char *name, enum weir_instrument instrument)
{
    const weir_metric_spec spec = {.size = sizeof spec, .instrument = (int)instrument};
    error.code = 0;
    return wr_family_declare(&registry, stream, name, &spec, &error);
}

static int declare_buckets(const char *name, const double *buckets, size_t count)
{
    const weir_metric_spec spec = {
        .size = sizeof spec, .instrument = WEIR_HISTOGRAM, .buckets = buckets, .bucket_count = count};
    return wr_family_declare(&registry, stream, name, &spec, &error);
}

static struct wr_metric_rules rules;

static void index_rules(struct wr_metric_rule *items, size_t count)
{
    rules = (struct wr_metric_rules){.items = items, .count = count};
    cr_assert(wr_metric_rules_index(&rules));
}

static void teardown(void)
{
    wr_metric_rules_fini(&rules);
}

TestSuite(family, .init = setup, .fini = teardown);

static struct wr_metric_rule rule(const char *group, const char *pattern, enum weir_instrument instrument)
{
    return (struct wr_metric_rule){
        .group = group, .pattern = pattern, .has_instrument = true, .meaning = {.instrument = instrument}};
}

/* ---- Declarations ---------------------------------------------------------------------------- */

Test(family, a_name_that_is_not_declared_is_a_value)
{
    cr_assert_eq(get("x")->instrument, WEIR_VALUE);
    cr_assert_eq(get("x")->view->instrument, WEIR_VALUE);
    cr_assert_eq(get("x")->gate, &stream->group->gate);
}

Test(family, a_declared_name_has_its_instrument_for_present_and_future_label_sets)
{
    const weir_label label = {"a", "b"};
    struct weir_metric *before = get("x");
    cr_assert_eq(declare("x", WEIR_COUNTER), 0);
    struct weir_metric *after = wr_series_get_labeled(&registry, stream, "x", 0, &label, 1, &error);
    cr_assert_eq(before->view->instrument, WEIR_COUNTER);
    cr_assert_eq(after->view->instrument, WEIR_COUNTER);
    cr_assert_eq(after->instrument, WEIR_COUNTER);
    cr_assert_eq(before->gate, &stream->group->instrument_gate);
}

Test(family, the_same_name_in_another_group_means_something_else)
{
    declare("x", WEIR_COUNTER);
    struct weir_stream *other = wr_stream_get(&registry, "app", NULL, 0, &error);
    cr_assert_eq(wr_series_get(&registry, other, "x", 0, &error)->instrument, WEIR_VALUE);
}

Test(family, a_total_of_a_counter_is_not_treated_as_an_increment)
{
    declare("x", WEIR_COUNTER);
    const struct weir_metric *total = wr_series_get(&registry, stream, "x", WEIR_SAMPLE_CUMULATIVE, &error);
    cr_assert_eq(total->instrument, WEIR_VALUE);
    cr_assert_eq(total->view->instrument, WEIR_COUNTER);
}

Test(family, a_conflicting_declaration_is_refused_and_the_first_stays)
{
    declare("x", WEIR_COUNTER);
    cr_assert_eq(declare("x", WEIR_GAUGE), WEIR_ERR_ARGUMENT);
    cr_assert_str_eq(error.text, "name \"x\": it was declared as a counter before, which stays");
    cr_assert_eq(get("x")->view->instrument, WEIR_COUNTER);
    cr_assert_eq(declare("x", WEIR_COUNTER), 0);
}

Test(family, repeating_a_declaration_is_not_a_change)
{
    for (int i = 0; i < 100; i++)
        cr_assert_eq(declare("x", WEIR_GAUGE), 0);
}

Test(family, buckets_are_copied_and_must_rise)
{
    double bounds[] = {1, 2.5, 10};
    cr_assert_eq(declare_buckets("x", bounds, 3), 0);
    bounds[0] = 7;
    const weir_series *view = get("x")->view;
    cr_assert_eq(view->bucket_count, 3);
    cr_assert_eq(view->buckets[0], 1);
    cr_assert_eq(declare_buckets("x", bounds, 3), WEIR_ERR_ARGUMENT);
    cr_assert_str_eq(error.text, "name \"x\": bucket 1 is 2.5; the bounds must be finite and rising");
    bounds[0] = 2;
    cr_assert_eq(declare_buckets("x", bounds, 3), WEIR_ERR_ARGUMENT, "other buckets");
    cr_assert_str_eq(error.text,
                     "name \"x\": it was declared as a histogram with other buckets before, which stays");
    bounds[2] = INFINITY;
    cr_assert_eq(declare_buckets("y", bounds, 3), WEIR_ERR_ARGUMENT);
}

Test(family, invalid_specifications_are_refused)
{
    static double many[WR_FAMILY_BUCKETS_MAX + 1];
    for (size_t i = 0; i <= WR_FAMILY_BUCKETS_MAX; i++)
        many[i] = (double)i;
    cr_assert_eq(declare("x", (enum weir_instrument)9), WEIR_ERR_ARGUMENT);
    cr_assert_eq(declare("bad\n", WEIR_GAUGE), WEIR_ERR_NAME);
    cr_assert_eq(declare_buckets("x", many, WR_FAMILY_BUCKETS_MAX + 1), WEIR_ERR_ARGUMENT);
    cr_assert_eq(declare_buckets("x", NULL, 1), WEIR_ERR_ARGUMENT);
    cr_assert_eq(get("x")->view->instrument, WEIR_VALUE);
}

Test(family, a_declaration_keeps_the_description)
{
    wr_family_describe(&registry, stream, "x", "ms", "how long", &error);
    declare("x", WEIR_HISTOGRAM);
    cr_assert_str_eq(get("x")->view->unit, "ms");
    cr_assert_str_eq(get("x")->view->help, "how long");
}

Test(family, the_overflow_series_is_not_declared)
{
    registry.max = 2;
    get("known");
    cr_assert_eq(declare("new", WEIR_COUNTER), WEIR_ERR_LIMIT);
    cr_assert_eq(get("new")->view->instrument, WEIR_VALUE);
}

static void learn(const char *name, enum weir_instrument instrument)
{
    static const double bounds[] = {1, 2};
    bool has_buckets = instrument == WEIR_HISTOGRAM;
    const weir_series read = {.instrument = (int32_t)instrument,
                              .unit = "rows",
                              .buckets = has_buckets ? bounds : NULL,
                              .bucket_count = has_buckets ? 2 : 0};
    wr_family_learn(&registry, get(name), &read);
}

Test(family, recovered_values_bring_their_meaning)
{
    learn("x", WEIR_COUNTER);
    cr_assert_eq(get("x")->view->instrument, WEIR_COUNTER);
    cr_assert_str_eq(get("x")->view->unit, "rows");
}

Test(family, the_meaning_of_recovered_values_does_not_bind_the_program)
{
    learn("x", WEIR_HISTOGRAM);
    cr_assert_eq(declare("x", WEIR_GAUGE), 0, "%s", error.text);
    cr_assert_eq(get("x")->view->instrument, WEIR_GAUGE);
    cr_assert_eq(get("x")->view->bucket_count, 0);
    cr_assert_eq(declare("x", WEIR_COUNTER), WEIR_ERR_ARGUMENT, "its own declaration does");
}

Test(family, the_meaning_of_recovered_values_is_not_enforced)
{
    struct weir_metric *metric = get("x");
    learn("x", WEIR_COUNTER);
    cr_assert_eq(metric->instrument, WEIR_VALUE);
    cr_assert_eq(metric->gate, &stream->group->gate);
    wr_family_describe(&registry, stream, "x", "bytes", NULL, &error);
    cr_assert_eq(metric->instrument, WEIR_VALUE);
    cr_assert_eq(metric->view->instrument, WEIR_COUNTER);
    cr_assert_str_eq(metric->view->unit, "bytes");
    cr_assert_eq(declare("x", WEIR_COUNTER), 0);
    cr_assert_eq(metric->instrument, WEIR_COUNTER, "a declaration of this process is");
    cr_assert_eq(wr_series_get(&registry, stream, "x", 0, &error)->view->instrument, WEIR_COUNTER);
}

Test(family, a_rule_for_a_name_of_recovered_values_is_enforced)
{
    struct wr_metric_rule items[] = {
        {.group = "*", .pattern = "x", .has_instrument = true, .meaning = {.instrument = WEIR_COUNTER}}};
    index_rules(items, 1);
    learn("x", WEIR_COUNTER);
    wr_family_set_rules(&registry, &rules);
    cr_assert_eq(get("x")->instrument, WEIR_COUNTER);
    wr_family_set_rules(&registry, NULL);
    cr_assert_eq(get("x")->instrument, WEIR_VALUE);
    cr_assert_eq(get("x")->view->instrument, WEIR_COUNTER);
}

Test(family, beyond_the_limit_of_series_the_shared_one_learns_nothing)
{
    bool no_memory = false;
    const weir_series read = {.group = "app.db", .name = "new", .instrument = WEIR_COUNTER};
    registry.max = 1;
    cr_assert_gt(wr_series_codec_intern(&registry, &read, &no_memory).number, 0);
    cr_assert_eq(get("other")->view->instrument, WEIR_VALUE);
    cr_assert_str_eq(get("other")->name, "weir_overflow");
}

Test(family, a_plain_value_may_be_declared_where_recovered_values_had_an_instrument)
{
    learn("x", WEIR_GAUGE);
    cr_assert_eq(declare("x", WEIR_VALUE), 0);
    cr_assert_eq(get("x")->view->instrument, WEIR_VALUE);
    cr_assert_str_eq(get("x")->view->unit, "rows");
}

Test(family, what_the_program_declared_is_not_replaced_by_recovered_values)
{
    declare("x", WEIR_GAUGE);
    learn("x", WEIR_COUNTER);
    cr_assert_eq(get("x")->view->instrument, WEIR_GAUGE);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static weir_number number(double value)
{
    return WEIR_DOUBLE(value);
}

Test(family, counters_take_finite_increments_that_are_not_negative)
{
    cr_assert(wr_instrument_accepts(WEIR_COUNTER, number(0)));
    cr_assert(wr_instrument_accepts(WEIR_COUNTER, number(1.5)));
    cr_assert_not(wr_instrument_accepts(WEIR_COUNTER, number(-1)));
    cr_assert_not(wr_instrument_accepts(WEIR_COUNTER, number(NAN)));
    cr_assert(wr_instrument_accepts(WEIR_COUNTER, number(WR_CELLS_MOST)));
    cr_assert_not(wr_instrument_accepts(WEIR_COUNTER, number(DBL_MAX)));
    cr_assert_not(wr_instrument_accepts(WEIR_COUNTER, number(INFINITY)));
    cr_assert_not(wr_instrument_accepts(WEIR_COUNTER, WEIR_INT(-1)));
}

Test(family, histograms_take_finite_values_and_gauges_any)
{
    cr_assert(wr_instrument_accepts(WEIR_HISTOGRAM, number(-1)));
    cr_assert_not(wr_instrument_accepts(WEIR_HISTOGRAM, number(NAN)));
    cr_assert_not(wr_instrument_accepts(WEIR_HISTOGRAM, number(-INFINITY)));
    cr_assert(wr_instrument_accepts(WEIR_GAUGE, number(NAN)));
}

Test(family, the_level_of_a_gauge_survives_a_change_of_its_description)
{
    double level = 0;
    declare("x", WEIR_GAUGE);
    cr_assert_not(wr_instrument_read_level(get("x"), &level), "it was not set");
    wr_instrument_set_level(get("x"), 5);
    cr_assert(wr_instrument_change_level(wr_instrument_level(get("x")), -2, &level));
    cr_assert_eq(level, 3);
    wr_family_describe(&registry, stream, "x", "rows", NULL, &error);
    cr_assert(wr_instrument_read_level(get("x"), &level));
    cr_assert_eq(level, 3);
}

Test(family, a_level_that_was_not_set_changes_from_0_and_none_becomes_infinite)
{
    double level;
    declare("x", WEIR_GAUGE);
    cr_assert(wr_instrument_change_level(wr_instrument_level(get("x")), DBL_MAX, &level));
    cr_assert_eq(level, DBL_MAX);
    cr_assert_not(wr_instrument_change_level(wr_instrument_level(get("x")), DBL_MAX, &level));
    cr_assert_not(wr_instrument_change_level(wr_instrument_level(get("x")), -INFINITY, &level));
    cr_assert_not(wr_instrument_change_level(wr_instrument_level(get("x")), NAN, &level));
    cr_assert(wr_instrument_read_level(get("x"), &level));
    cr_assert_eq(level, DBL_MAX);
}

static void expect_gates(enum wr_gate plain, enum wr_gate checked, enum wr_gate histogram)
{
    cr_assert_eq(stream->group->gate, plain);
    cr_assert_eq(stream->group->instrument_gate, checked);
    cr_assert_eq(stream->group->histogram_gate, histogram);
}

Test(family, histograms_have_a_gate_of_their_own_since_percentiles_may_be_wanted_of_them)
{
    wr_gate_set(stream->group, WR_GATE_OPEN_UNTIMED);
    expect_gates(WR_GATE_OPEN_UNTIMED, WR_GATE_CHECKED_UNTIMED, WR_GATE_CHECKED_UNTIMED);
    wr_gate_set(stream->group, WR_GATE_OPEN_RANKED);
    expect_gates(WR_GATE_OPEN_UNTIMED, WR_GATE_CHECKED_UNTIMED, WR_GATE_CHECKED_RANKED);
    wr_gate_set(stream->group, WR_GATE_OPEN);
    expect_gates(WR_GATE_OPEN, WR_GATE_CHECKED, WR_GATE_CHECKED);
    declare("c", WEIR_COUNTER);
    declare("g", WEIR_GAUGE);
    declare("h", WEIR_HISTOGRAM);
    cr_assert_eq(get("c")->gate, &stream->group->instrument_gate);
    cr_assert_eq(get("g")->gate, &stream->group->instrument_gate);
    cr_assert_eq(get("h")->gate, &stream->group->histogram_gate);
    cr_assert_eq(get("v")->gate, &stream->group->gate);
    wr_registry_after_fork(&registry);
    expect_gates(WR_GATE_COLD, WR_GATE_COLD, WR_GATE_COLD);
}

Test(family, the_gate_of_series_with_an_instrument_follows_that_of_the_group)
{
    wr_gate_set(stream->group, WR_GATE_OPEN);
    cr_assert_eq(stream->group->instrument_gate, WR_GATE_CHECKED);
    wr_gate_set(stream->group, WR_GATE_WAIT);
    cr_assert_eq(stream->group->instrument_gate, WR_GATE_WAIT);
    wr_registry_after_fork(&registry);
    cr_assert_eq(stream->group->instrument_gate, WR_GATE_COLD);
}

/* ---- Rules of a configuration ---------------------------------------------------------------- */

Test(family, a_rule_takes_precedence_over_the_program)
{
    struct wr_metric_rule items[] = {rule("app.db", "x", WEIR_GAUGE)};
    index_rules(items, 1);
    declare("x", WEIR_COUNTER);
    wr_family_set_rules(&registry, &rules);
    cr_assert_eq(get("x")->instrument, WEIR_GAUGE);
    cr_assert(items[0].matched);
    wr_family_set_rules(&registry, NULL);
    cr_assert_eq(get("x")->instrument, WEIR_COUNTER);
}

Test(family, a_rule_applies_to_names_that_come_later)
{
    struct wr_metric_rule items[] = {rule("*", "*.total", WEIR_COUNTER)};
    index_rules(items, 1);
    wr_family_set_rules(&registry, &rules);
    cr_assert_not(items[0].matched);
    cr_assert_eq(get("rows.total")->instrument, WEIR_COUNTER);
    cr_assert_eq(get("rows")->instrument, WEIR_VALUE);
}

Test(family, the_nearest_group_then_the_most_specific_pattern_decides)
{
    struct wr_metric_rule items[] = {
        rule("*", "rows", WEIR_GAUGE),       rule("app", "*", WEIR_VALUE),
        rule("app", "r*", WEIR_HISTOGRAM),   rule("app", "*rows", WEIR_COUNTER),
        rule("app.db", "other", WEIR_GAUGE), rule("app.d", "rows", WEIR_GAUGE),
    };
    index_rules(items, 6);
    cr_assert_eq(wr_metric_rules_find(&rules, "app.db", "rows"), &items[3]);
    cr_assert_eq(wr_metric_rules_find(&rules, "app.db", "other"), &items[4]);
    cr_assert_eq(wr_metric_rules_find(&rules, "app.db", "size"), &items[1]);
    cr_assert_eq(wr_metric_rules_find(&rules, "else", "rows"), &items[0]);
    cr_assert_null(wr_metric_rules_find(&rules, "else", "size"));
    cr_assert_null(wr_metric_rules_find(&rules, "weir", "rows"), "\"*\" is not for weir's own metrics");
}

static bool matches(const char *pattern, const char *name)
{
    struct wr_metric_rule items[] = {rule("g", pattern, WEIR_GAUGE)};
    index_rules(items, 1);
    bool found = wr_metric_rules_find(&rules, "g", name);
    wr_metric_rules_fini(&rules);
    return found;
}

static const weir_series *derive(const char *name)
{
    const struct wr_meaning meaning = {.instrument = WEIR_VALUE, .unit = "B"};
    return wr_series_derive(&registry, stream, name, 0, &meaning)->view;
}

Test(family, a_pattern_is_not_for_the_parts_of_a_name)
{
    struct wr_metric_rule items[] = {rule("*", "request*", WEIR_COUNTER), rule("*", "request.max", WEIR_GAUGE)};
    index_rules(items, 2);
    wr_family_set_rules(&registry, &rules);
    cr_assert_eq(derive("request.min")->instrument, WEIR_VALUE);
    cr_assert_str_eq(derive("request.min")->unit, "B");
    cr_assert_eq(derive("request.max")->instrument, WEIR_GAUGE, "it is named there");
    cr_assert_eq(get("request.min")->view->instrument, WEIR_COUNTER, "a series that calls add to");
    cr_assert_eq(derive("request.min")->instrument, WEIR_VALUE);
}

Test(family, patterns_match_as_shells_do)
{
    cr_assert(matches("*", "anything"));
    cr_assert(matches("a*c", "abbc"));
    cr_assert(matches("a*b*c", "a1b2bc"));
    cr_assert(matches("abc*", "abc"));
    cr_assert_not(matches("a*c", "abcd"));
    cr_assert_not(matches("abc", "ab"));
    cr_assert_not(matches("*a", "ab"));
}

Test(family, the_first_of_equally_specific_patterns_decides)
{
    struct wr_metric_rule items[] = {rule("a", "*x", WEIR_GAUGE), rule("b", "x*", WEIR_GAUGE),
                                     rule("b", "*x", WEIR_COUNTER), rule("b", "x", WEIR_VALUE)};
    index_rules(items, 4);
    cr_assert_eq(wr_metric_rules_find(&rules, "b", "xx"), &items[1]);
    cr_assert_eq(wr_metric_rules_find(&rules, "b", "x"), &items[3]);
    cr_assert_eq(wr_metric_rules_find(&rules, "a", "xx"), &items[0]);
    cr_assert_null(wr_metric_rules_find(&rules, "a\nxx", ""), "a group and a name are kept apart");
}

/* If each lookup compared all entries, this would take minutes. */
Test(family, the_rule_of_a_name_is_found_among_many, .timeout = 60)
{
    enum { MANY = 200000, NAME_ROOM = 16 };
    struct wr_metric_rule *items = calloc(MANY, sizeof *items);
    char(*names)[NAME_ROOM] = calloc(MANY, NAME_ROOM);
    cr_assert(items && names);
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], NAME_ROOM, "n%d", i);
        items[i] = rule(i % 2 ? "*" : "app", names[i], WEIR_COUNTER);
    }
    index_rules(items, MANY);
    for (int i = 0; i < MANY; i++)
        cr_assert_eq(wr_metric_rules_find(&rules, "app.db", names[i]), &items[i]);
    wr_metric_rules_fini(&rules);
    free(names);
    free(items);
}

Test(family, meanings_that_reloads_change_are_bounded)
{
    struct wr_metric_rule items[] = {rule("*", "x", WEIR_GAUGE)};
    index_rules(items, 1);
    get("x");
    for (int i = 0; i < WR_FAMILY_RULE_CHANGES_MAX; i++)
        wr_family_set_rules(&registry, i % 2 ? NULL : &rules);
    const weir_series *last = get("x")->view;
    wr_family_set_rules(&registry, &rules);
    wr_family_set_rules(&registry, NULL);
    cr_assert_eq(get("x")->view, last);
}

/* ---- Measured durations ---------------------------------------------------------------------- */

Test(family, a_measurement_has_two_counters_and_a_histogram_in_milliseconds)
{
    const struct wr_prof_names *names = wr_prof_names_get(&registry, stream, "query");
    cr_assert_str_eq(names->success->name, "query.success");
    cr_assert_eq(names->failure->instrument, WEIR_COUNTER);
    cr_assert_eq(names->duration_ms->instrument, WEIR_HISTOGRAM);
    cr_assert_str_eq(names->duration_ms->view->unit, "ms");
    cr_assert_eq(wr_prof_names_get(&registry, stream, "query"), names);
    cr_assert_eq(names->success, get("query.success"));
}

Test(family, a_measurement_without_valid_names_has_no_series)
{
    char longest[256];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    cr_assert_null(wr_prof_names_get(&registry, stream, ""));
    cr_assert_null(wr_prof_names_get(&registry, stream, longest), "the suffix makes it too long");
    cr_assert_null(wr_prof_names_get(&registry, &registry.bad_name, "query"));
    declare("taken.success", WEIR_GAUGE);
    cr_assert_null(wr_prof_names_get(&registry, stream, "taken"));
}
