/* config: error messages. */
#include "text/common.h"
#include "configs.h"

static void expect_refused(const char *text, const char *expected)
{
    struct wr_config *config = read_text(text);
    cr_assert_null(config, "%s was accepted", text);
    cr_assert_eq(error.code, WEIR_ERR_CONFIG, "%s: %d", text, error.code);
    cr_assert_str_eq(error.text, expected, "%s: %s", text, error.text);
}

#define SECTIONS "allowed: $schema, include, settings, handlers, groups, metrics, sources"
#define SETTINGS                                                                                               \
    "allowed: shutdown_timeout, labels, instance, reload, stats_interval, clock, journal, max_series, "        \
    "max_series_per_name, expiry, unknown_keys, status"
#define COMMON_OPTIONS                                                                                         \
    "allowed: format, delivery, queue, overflow, block_timeout, batch, batch_bytes, linger, retry_min, "       \
    "retry_max, spool, spool_limit, aggregate, aggregate_series, percentiles, window, parts, optional"
#define DURATION "a duration (like 5s, 200ms; units: ns, us, ms, s, m, h, d)"
#define ROUTES                                                                                                 \
    "must be the name of a handler or of an installed handler type, \"inherit\", an object with \"to\", or "   \
    "an "                                                                                                      \
    "array of these, got "

Test(config_errors, the_root_is_an_object)
{
    expect_refused("[]", "weir.json:1:1: must be an object, got an array");
    expect_refused(" null", "weir.json:1:2: must be an object, got null");
    expect_refused("5", "weir.json:1:1: must be an object, got 5");
    expect_refused("\"{}\"", "weir.json:1:1: must be an object, got \"{}\"");
}

Test(config_errors, invalid_json_is_reported_with_its_place)
{
    expect_refused("", "weir.json:1:1: the text ends where a value is expected");
    expect_refused("{\"handlers\": {}, }", "weir.json:1:16: trailing comma");
    expect_refused("{\"groups\": {},\n\"groups\": {}}", "weir.json:2:1: duplicate key: \"groups\"");
    expect_refused("{\"groups\": {\"a\": \"x\", \"a\": \"y\"}}", "weir.json:1:23: duplicate key: \"a\"");
    expect_refused("{\"groups\": {\"a\": \"x\"}", "weir.json:1:1: unclosed {");
}

Test(config_errors, an_unknown_section_is_reported_with_the_nearest_match)
{
    expect_refused("{\"handler\": {}}",
                   "weir.json:1:2: handler: unknown section; did you mean \"handlers\"? " SECTIONS);
    expect_refused("{\"colour\": {}}", "weir.json:1:2: colour: unknown section; " SECTIONS);
    expect_refused("{\"\": {}}", "weir.json:1:2: unknown section; " SECTIONS);
}

Test(config_errors, every_section_has_its_type)
{
    expect_refused("{\"$schema\": 5}", "weir.json:1:13: $schema: must be a string, got 5");
    expect_refused("{\"settings\": []}", "weir.json:1:14: settings: must be an object, got an array");
    expect_refused("{\"handlers\": null}", "weir.json:1:14: handlers: must be an object, got null");
    expect_refused("{\"groups\": \"console\"}", "weir.json:1:12: groups: must be an object, got \"console\"");
}

Test(config_errors, settings_are_checked)
{
    expect_refused("{\"settings\": {\"shutdown_timout\": \"5s\"}}",
                   "weir.json:1:15: settings.shutdown_timout: unknown option; did you mean "
                   "\"shutdown_timeout\"? " SETTINGS);
    expect_refused("{\"settings\": {\"weather\": \"/x\"}}",
                   "weir.json:1:15: settings.weather: unknown option; " SETTINGS);
    expect_refused("{\"settings\": {\"shutdown_timeout\": 5}}",
                   "weir.json:1:35: settings.shutdown_timeout: 5 has no unit; it must be " DURATION);
    expect_refused("{\"settings\": {\"shutdown_timeout\": \"25h\"}}",
                   "weir.json:1:35: settings.shutdown_timeout: \"25h\" is out of range; allowed: 0s..1d");
    expect_refused("{\"settings\": {\"stats_interval\": \"0s\"}}",
                   "weir.json:1:33: settings.stats_interval: \"0s\" is out of range; allowed: 1ms..1d");
    expect_refused("{\"settings\": {\"max_series\": 0}}",
                   "weir.json:1:29: settings.max_series: 0 is out of range; allowed: 1..30000000");
    expect_refused("{\"settings\": {\"max_series\": 30000001}}",
                   "weir.json:1:29: settings.max_series: 30000001 is out of range; allowed: 1..30000000");
    expect_refused("{\"settings\": {\"reload\": true}}",
                   "weir.json:1:25: settings.reload: true is not " DURATION);
    expect_refused("{\"settings\": {\"labels\": {\"host\": 5}}}",
                   "weir.json:1:34: settings.labels.host: 5 is not a string");
    expect_refused("{\"settings\": {\"instance\": 5}}", "weir.json:1:27: settings.instance: 5 is not a string");
    expect_refused("{\"settings\": {\"labels\": [\"host\"]}}",
                   "weir.json:1:25: settings.labels: an array is not an object with strings for values");
    expect_refused("{\"settings\": {\"labels\": {\"a\": \"${WEIR_UNIT_NOPE}\"}}}",
                   "weir.json:1:31: settings.labels.a: ${WEIR_UNIT_NOPE}: the variable is not set; "
                   "${WEIR_UNIT_NOPE:-default} sets a default");
}

Test(config_errors, only_gauges_merge)
{
    expect_refused("{\"metrics\": {\"a\": {\"x\": {\"merge\": \"min\"}}}}",
                   "weir.json:1:35: metrics.a.x.merge: \"min\" is not allowed; allowed: last, sum, max");
    expect_refused(
        "{\"metrics\": {\"a\": {\"x\": {\"instrument\": \"histogram\", \"merge\": \"last\"}}}}",
        "weir.json:1:53: metrics.a.x.merge: only a gauge has a level to merge, and \"instrument\" is "
        "\"histogram\"");
}

Test(config_errors, a_handler_is_an_object_with_a_type)
{
    expect_refused("{\"handlers\": {\"a\": \"file\"}}",
                   "weir.json:1:20: handlers.a: must be an object, got \"file\"");
    expect_refused("{\"handlers\": {\"a\": null}}", "weir.json:1:20: handlers.a: must be an object, got null");
    expect_refused("{\"handlers\": {\"a\": {\"path\": \"x\"}}}",
                   "weir.json:1:20: handlers.a: the option \"type\" is missing: the handler type, like "
                   "\"file\" or \"console\"");
    expect_refused("{\"handlers\": {\"a\": {\"type\": 5}}}",
                   "weir.json:1:29: handlers.a.type: 5 is not a string");
    expect_refused("{\"handlers\": {\"a\": {\"type\": null}}}",
                   "weir.json:1:29: handlers.a.type: null is not a string");
    expect_refused(
        "{\"handlers\": {\"a\": {\"type\": \"$\"}}}",
        "weir.json:1:29: handlers.a.type: unescaped $; write $$ for a dollar sign, ${NAME} for a variable");
}

Test(config_errors, a_plugin_is_an_absolute_path)
{
    static const char hint[] = "without \"plugin\", the plugin folders are searched for the type";
    static const char *const paths[] = {"x.so", "./x.so", "", "../x.so"};
    for (size_t i = 0; i < WR_COUNT_OF(paths); i++) {
        char text[200], expected[300];
        snprintf(text, sizeof text, "{\"handlers\": {\"a\": {\"type\": \"x\", \"plugin\": \"%s\"}}}", paths[i]);
        snprintf(expected, sizeof expected,
                 "weir.json:1:44: handlers.a.plugin: must be absolute, got \"%s\"; %s", paths[i], hint);
        expect_refused(text, expected);
    }
    expect_refused("{\"handlers\": {\"a\": {\"type\": \"x\", \"plugin\": {}}}}",
                   "weir.json:1:44: handlers.a.plugin: an object is not a string");
}

Test(config_errors, a_very_long_plugin_path_is_truncated_before_the_reason)
{
    char text[3000] = "{\"handlers\": {\"a\": {\"type\": \"x\", \"plugin\": \"";
    size_t length = strlen(text);
    memset(text + length, 'x', 2000);
    strcpy(text + length + 2000, "\"}}}");
    cr_assert_null(read_text(text));
    cr_assert(strstr(error.text, "xxx...\"; without \"plugin\""), "%s", error.text);
}

Test(config_errors, a_handlers_name_follows_the_rules)
{
    expect_refused("{\"handlers\": {\"\": {\"type\": \"x\"}}}",
                   "weir.json:1:15: handlers.: handler name \"\": empty; a name must have 1 to 255 bytes");
    expect_refused("{\"handlers\": {\"a\\nb\": {\"type\": \"x\"}}}",
                   "weir.json:1:15: handlers.a\\nb: handler name \"a\\nb\": control character at byte 2; names "
                   "must be valid "
                   "UTF-8 without control characters");
    expect_refused("{\"handlers\": {\"inherit\": {\"type\": \"x\"}}}",
                   "weir.json:1:15: handlers.inherit: the name is reserved: in a route, \"inherit\" is the "
                   "parent's route");
}

Test(config_errors, defaults_may_only_be_common_options)
{
    expect_refused("{\"handlers\": {\"*\": \"json\"}}",
                   "weir.json:1:20: handlers.*: must be an object, got \"json\"");
    expect_refused("{\"handlers\": {\"*\": {\"path\": \"x\"}}}",
                   "weir.json:1:21: handlers.*.path: unknown option; did you mean "
                   "\"batch\"? " COMMON_OPTIONS);
    expect_refused("{\"handlers\": {\"*\": {\"type\": \"file\"}}}",
                   "weir.json:1:21: handlers.*.type: unknown option; " COMMON_OPTIONS);
    expect_refused("{\"handlers\": {\"*\": {\"overflow\": \"drop\"}}}",
                   "weir.json:1:33: handlers.*.overflow: \"drop\" is not allowed; allowed: block, drop_newest, "
                   "drop_oldest");
    expect_refused("{\"handlers\": {\"*\": {\"queue\": 1048576}}}",
                   "weir.json:1:30: handlers.*.queue: 1048576 has no unit; it must be a size (like 64KiB, "
                   "1MiB; units: B, KiB, "
                   "MiB, GiB, TiB, kB, MB, GB, TB)");
    expect_refused("{\"handlers\": {\"*\": {\"batch\": 99999999999999999999}}}",
                   "weir.json:1:30: handlers.*.batch: 99999999999999999999 is not an integer");
}

Test(config_errors, a_route_contains_names)
{
    expect_refused("{\"groups\": {\"a\": 5}}", "weir.json:1:18: groups.a: " ROUTES "5");
    expect_refused("{\"groups\": {\"a\": null}}", "weir.json:1:18: groups.a: " ROUTES "null");
    expect_refused("{\"groups\": {\"a\": [\"x\", 5]}}", "weir.json:1:24: groups.a[1]: " ROUTES "5");
    expect_refused("{\"groups\": {\"a\": [[\"x\"]]}}", "weir.json:1:19: groups.a[0]: " ROUTES "an array");
    expect_refused("{\"groups\": {\"a\": [true]}}", "weir.json:1:19: groups.a[0]: " ROUTES "true");
}

Test(config_errors, a_groups_name_follows_the_rules)
{
    expect_refused("{\"groups\": {\"\": \"x\"}}",
                   "weir.json:1:13: groups.: group \"\": empty; a name must have 1 to 255 bytes");
    expect_refused("{\"groups\": {\"a..b\": \"x\"}}",
                   "weir.json:1:13: groups.a..b: group \"a..b\": empty part; a group is one or "
                   "more names separated by single dots");
    expect_refused("{\"groups\": {\".\": []}}",
                   "weir.json:1:13: groups..: group \".\": empty part; a group is one or more names "
                   "separated by single dots");
    expect_refused("{\"groups\": {\"a.*\": \"x\"}}",
                   "weir.json:1:13: groups.a.*: group \"a.*\": a group must not contain '*'");
    expect_refused("{\"groups\": {\"**\": \"x\"}}",
                   "weir.json:1:13: groups.**: group \"**\": a group must not contain '*'");
}

Test(config_errors, the_default_route_inherits_nothing)
{
    expect_refused("{\"groups\": {\"*\": \"inherit\"}}",
                   "weir.json:1:18: groups.*: must not be \"inherit\": \"*\" has no parent");
    expect_refused("{\"groups\": {\"*\": [\"console\", \"inherit\"]}}",
                   "weir.json:1:30: groups.*[1]: must not be \"inherit\": \"*\" has no parent");
}

/* ---- Objects in routes ----------------------------------------------------------------------- */

#define NAMES "must be the name of a handler or of an installed handler type, or an array of these, got "
#define TRANSFORMS "allowed: to, rename, only, except, labels, keep_labels, drop_labels, sample"
#define EMPTY " \"\": empty; a name must have 1 to 255 bytes"

/* members: of an object in the route of group "a", with ' in place of ". The place is what follows the
 * object's. */
static void expect_object_refused(const char *members, const char *expected)
{
    char text[1024], message[1024];
    snprintf(text, sizeof text, "{'groups': {'a': {%s}}}", members);
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    snprintf(message, sizeof message, "weir.json:1:%s", expected);
    expect_refused(text, message);
}

Test(config_errors, an_object_in_a_route_names_handlers)
{
    expect_object_refused("", "18: groups.a: \"to\" is missing: a handler, or an array of handlers");
    expect_object_refused("'only': ['x']",
                          "18: groups.a: \"to\" is missing: a handler, or an array of handlers");
    expect_object_refused("'to': []", "25: groups.a.to: must name at least one handler");
    expect_object_refused("'to': 5", "25: groups.a.to: " NAMES "5");
    expect_object_refused("'to': ['x', {}]", "31: groups.a.to[1]: " NAMES "an object");
    expect_object_refused("'to': ['inherit']", "26: groups.a.to[0]: must not be \"inherit\": an object names "
                                               "handlers; \"inherit\" stands beside it");
    expect_refused(
        "{\"groups\": {\"a\": [\"x\", {\"to\": \"x\", \"sample\": 0.5}]}}",
        "weir.json:1:31: groups.a[1].to: the route names \"x\" already; a handler of an object is named "
        "once");
    expect_refused(
        "{\"groups\": {\"a\": [{\"to\": \"x\", \"sample\": 0.5}, {\"to\": [\"y\", \"x\"]}]}}",
        "weir.json:1:60: groups.a[1].to[1]: the route names \"x\" already; a handler of an object is named "
        "once");
}

Test(config_errors, the_filters_of_an_object_are_checked)
{
    expect_object_refused("'to': 'x', 'onyl': []",
                          "30: groups.a.onyl: unknown option; did you mean \"only\"? " TRANSFORMS);
    expect_object_refused("'to': 'x', 'only': 'a'", "38: groups.a.only: \"a\" is not an array of strings");
    expect_object_refused(
        "'to': 'x', 'only': []",
        "38: groups.a.only: must not be empty, as no value would pass; to send none, leave the "
        "handler out of the route");
    expect_object_refused("'to': 'x', 'only': ['']", "39: groups.a.only[0]: name" EMPTY);
    expect_object_refused("'to': 'x', 'except': ['a', 5]", "46: groups.a.except[1]: 5 is not a string");
    expect_object_refused(
        "'to': 'x', 'except': ['a', '\\u0001']",
        "46: groups.a.except[1]: name \"\\x01\": control character at byte 1; names must be valid UTF-8 "
        "without control characters");
}

Test(config_errors, the_new_names_of_an_object_are_checked)
{
    expect_object_refused("'to': 'x', 'rename': ['a']", "40: groups.a.rename: must be an object, got an array");
    expect_object_refused("'to': 'x', 'rename': {'a': 5}", "46: groups.a.rename.a: 5 is not a string");
    expect_object_refused("'to': 'x', 'rename': {'a': ''}", "46: groups.a.rename.a: name" EMPTY);
    expect_object_refused("'to': 'x', 'rename': {'': 'a'}", "41: groups.a.rename.: name" EMPTY);
    expect_object_refused("'to': 'x', 'rename': {'a*b*': 'c'}",
                          "41: groups.a.rename.a*b*: at most one '*' is allowed here");
    expect_object_refused(
        "'to': 'x', 'rename': {'a': 'c*'}",
        "46: groups.a.rename.a: \"c*\" has more '*' than the name that it replaces; none is allowed "
        "here");
    expect_object_refused("'to': 'x', 'rename': {'a*': '*c*'}",
                          "47: groups.a.rename.a*: \"*c*\" has more '*' than the name that it replaces; one is "
                          "allowed");
}

Test(config_errors, the_labels_of_an_object_are_checked)
{
    expect_object_refused("'to': 'x', 'labels': ['a']",
                          "40: groups.a.labels: an array is not an object with strings for values");
    expect_object_refused("'to': 'x', 'labels': {'a': 5}", "46: groups.a.labels.a: 5 is not a string");
    expect_object_refused("'to': 'x', 'labels': {'a': '${NOT_SET_ANYWHERE}'}",
                          "46: groups.a.labels.a: ${NOT_SET_ANYWHERE}: the variable is not set; "
                          "${NOT_SET_ANYWHERE:-default} sets a default");
    expect_object_refused(
        "'to': 'x', 'keep_labels': ['a'], 'drop_labels': ['b']",
        "52: groups.a.drop_labels: only one of \"keep_labels\" and \"drop_labels\" is allowed");
    expect_object_refused("'to': 'x', 'labels': {'a': 'b'}, 'keep_labels': []",
                          "41: groups.a.labels.a: removed again, as \"keep_labels\" does not name it");
    expect_object_refused("'to': 'x', 'labels': {'a': 'b'}, 'drop_labels': ['a']",
                          "41: groups.a.labels.a: removed again, as \"drop_labels\" names it");
    expect_object_refused("'to': 'x', 'keep_labels': ['']", "46: groups.a.keep_labels[0]: label key" EMPTY);
}

Test(config_errors, the_sample_of_an_object_is_checked)
{
    expect_object_refused(
        "'to': 'x', 'sample': 0",
        "40: groups.a.sample: must be above 0 and at most 1, got 0; to send none, leave the handler "
        "out");
    expect_object_refused("'to': 'x', 'sample': 1.5",
                          "40: groups.a.sample: 1.5 is out of range; allowed: 0..1");
    expect_object_refused("'to': 'x', 'sample': -0.5",
                          "40: groups.a.sample: -0.5 is out of range; allowed: 0..1");
    expect_object_refused("'to': 'x', 'sample': '10%'", "40: groups.a.sample: \"10%\" is not a number");
}
