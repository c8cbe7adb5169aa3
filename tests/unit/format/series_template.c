/* Templates of topics, subjects and keys. */
#include "format/series_template.h"
#include "batch_fixture.h"

#include <weir/test_clock.h>

static const weir_label own[] = {{"empty", ""}, {"host", "own"}, {"route", "/x y"}};
static const weir_label common[] = {{"host", "common"}, {"zone", "z1"}};

static char expanded[256];

static const char *expand_with(const char *text, const struct series_template_rules *rules, size_t room)
{
    uint32_t id = add_series("my_app.db", "calc.latency", own, 3);
    set_labels(common, 2);
    size_t length =
        wr_series_template_expand(text, rules, fixture_batch(), &fixture.series[id], expanded, room);
    cr_assert(length >= room || length == strlen(expanded));
    return expanded;
}

static const char *expand(const char *text)
{
    static const struct series_template_rules rules = {.absent = "_"};
    return expand_with(text, &rules, sizeof expanded);
}

/* The message of a refusal; "": accepted. */
static const char *check(const char *text)
{
    static weir_test_clock clock;
    static const weir_handler_type type = {.size = sizeof type, .name = "test"};
    weir_test_clock_init(&clock, &type, "test");
    cr_assert_eq(wr_series_template_check(&clock.host, "topic", text), !*clock.reason, "%s", clock.reason);
    return clock.reason;
}

Test(series_template, fields_stand_for_group_name_and_labels)
{
    cr_assert_str_eq(expand("metrics"), "metrics");
    cr_assert_str_eq(expand("a.{group}.{name}"), "a.my_app.db.calc.latency");
    cr_assert_str_eq(expand("{group}{name}"), "my_app.dbcalc.latency");
    cr_assert_str_eq(expand("{label.route}-{label.zone}"), "/x y-z1");
}

Test(series_template, labels_of_the_series_take_precedence)
{
    cr_assert_str_eq(expand("{label.host}"), "own");
}

Test(series_template, absent_and_empty_labels_are_written_as_the_rules_have_it)
{
    static const struct series_template_rules none = {0};
    cr_assert_str_eq(expand("{label.hos}.{label.empty}.{label.hosts}"), "_._._");
    cr_assert_str_eq(expand_with("<{label.nowhere}>", &none, sizeof expanded), "<>");
}

Test(series_template, doubled_braces_are_braces)
{
    cr_assert_str_eq(expand("{{{name}}}"), "{calc.latency}");
    cr_assert_str_eq(expand("}}{{"), "}{");
}

static char to_underscore(enum series_template_kind field, char byte)
{
    return byte == '.' && field != SERIES_TEMPLATE_GROUP ? '_' : byte;
}

Test(series_template, the_rules_map_the_bytes_of_values_but_not_of_text)
{
    static const struct series_template_rules rules = {.map = to_underscore};
    cr_assert_str_eq(expand_with("a.{group}.{name}", &rules, sizeof expanded), "a.my_app.db.calc_latency");
}

Test(series_template, an_expansion_that_does_not_fit_is_cut_and_its_length_is_returned)
{
    static const struct series_template_rules rules = {0};
    cr_assert_str_eq(expand_with("{group}", &rules, 4), "my_");
    cr_assert_eq(wr_series_template_expand("{group}", &rules, fixture_batch(), &fixture.series[0], NULL, 0),
                 strlen("my_app.db"));
}

Test(series_template, a_template_without_fields_is_constant)
{
    cr_assert(wr_series_template_is_constant("metrics{{}}"));
    cr_assert(wr_series_template_is_constant(""));
    cr_assert_not(wr_series_template_is_constant("metrics.{name}"));
}

Test(series_template, valid_templates_are_accepted)
{
    cr_assert_str_eq(check("a.{group}.{name}.{label.a-b.c}{{x}}"), "");
    cr_assert_str_eq(check(""), "");
}

Test(series_template, invalid_templates_are_refused_with_the_field)
{
    static const char allowed[] = "allowed: {group}, {name}, {label.KEY}, and {{ and }} for braces";
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"a.{grp}", "\"a.{grp}\": {grp} is not a field"},
        {"{}", "\"{}\": {} is not a field"},
        {"{label.}", "\"{label.}\": {label.} is not a field"},
        {"{label}", "\"{label}\": {label} is not a field"},
        {"{group", "\"{group\": the brace in \"{group\" has no partner"},
        {"a}b", "\"a}b\": the brace in \"}\" has no partner"},
        {"a{", "\"a{\": the brace in \"{\" has no partner"},
        {"{a{name}", "\"{a{name}\": {a{name} is not a field"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char expected[256];
        snprintf(expected, sizeof expected, "%s; %s", wrong[i].message, allowed);
        cr_assert_str_eq(check(wrong[i].text), expected);
    }
}

Test(series_template, a_key_that_is_too_long_is_not_a_field)
{
    char text[400] = "{label.";
    memset(text + strlen(text), 'k', 256);
    strcat(text, "}");
    cr_assert(*check(text));
}
