/* config_edit: calls of weir_configure. */
#include <malloc.h>

#include "config/config_edit.h"
#include "configs.h"

/* Edits a route; replaces *config by the result. */
static void route(struct wr_config **config, const char *group, const char *type, const char *options)
{
    error = (struct wr_error){0};
    struct wr_config *next = wr_config_edit_route(*config, group, type, options, &error);
    cr_assert_not_null(next, "%s -> %s: %s", group, type, error.text);
    wr_config_drop(*config);
    *config = next;
}

static void expect_refused(struct wr_config *config, const char *type, const char *options,
                           const char *expected)
{
    error = (struct wr_error){0};
    cr_assert_null(wr_config_edit_route(config, "a", type, options, &error));
    cr_assert_eq(error.code, WEIR_ERR_CONFIG);
    cr_assert_str_eq(error.text, expected);
}

/* The configuration of a reread file, with the calls of `config`. */
static struct wr_config *reread(const struct wr_config *config, const char *text)
{
    struct wr_config *base = make_from(text), *whole = wr_config_edit_carry_over(base, config, &error);
    cr_assert_not_null(whole, "%s", error.text);
    wr_config_drop(base);
    return whole;
}

static const char options_1[] = "{\"path\": \"1\"}", options_2[] = "{\"path\": \"2\"}",
                  options_3[] = "{\"path\": \"3\"}";

Test(config_calls, a_type_without_options_is_routed_by_its_name)
{
    struct wr_config *config = wr_config_new();
    route(&config, "a", "console", NULL);
    cr_assert_str_eq(route_of(config, "a", false), "console");
    cr_assert_str_eq(handlers_of(config), "");
    cr_assert_eq(config->call_count, 1);
    wr_config_drop(config);
}

Test(config_calls, a_handler_is_named_after_its_type)
{
    struct wr_config *config = wr_config_new();
    route(&config, "a", "file", options_1);
    cr_assert_str_eq(route_of(config, "a", false), "file");
    cr_assert_str_eq(handlers_of(config), "file=file");
    cr_assert_str_eq(config->handlers[0].document->text, options_1);
    cr_assert_str_eq(wr_node_member(config->handlers[0].node, "path")->text, "1");
    cr_assert_not_null(config->handlers[0].environment);
    wr_config_drop(config);
}

Test(config_calls, the_same_options_share_a_handler)
{
    struct wr_config *config = wr_config_new();
    route(&config, "a", "file", options_1);
    route(&config, "b", "file", options_1);
    cr_assert_str_eq(route_of(config, "b", false), "file");
    cr_assert_str_eq(handlers_of(config), "file=file");
    wr_config_drop(config);
}

Test(config_calls, other_options_make_a_handler_named_after_type_and_group)
{
    struct wr_config *config = wr_config_new();
    route(&config, "a", "file", options_1);
    route(&config, "b", "file", options_2);
    route(&config, "*", "file", options_3);
    cr_assert_str_eq(route_of(config, "a", false), "file");
    cr_assert_str_eq(route_of(config, "b", false), "file:b");
    cr_assert_str_eq(route_of(config, "*", false), "file:*");
    cr_assert_str_eq(handlers_of(config), "file=file file:b=file file:*=file");
    wr_config_drop(config);
}

Test(config_calls, options_next_to_a_type_used_without_any_make_another_name)
{
    struct wr_config *config = wr_config_new();
    route(&config, "a", "file", NULL);
    route(&config, "b", "file", options_1);
    cr_assert_str_eq(route_of(config, "a", false), "file");
    cr_assert_str_eq(route_of(config, "b", false), "file:b");
    cr_assert_str_eq(handlers_of(config), "file:b=file");
    route(&config, "c", "file", NULL);
    cr_assert_str_eq(route_of(config, "c", false), "file");
    wr_config_drop(config);
}

Test(config_calls, no_options_next_to_a_handler_with_some_are_an_empty_object)
{
    struct wr_config *config = wr_config_new();
    route(&config, "a", "file", options_1);
    route(&config, "b", "file", NULL);
    cr_assert_str_eq(route_of(config, "b", false), "file:b");
    cr_assert_str_eq(wr_config_find_handler(config, "file:b")->document->text, "{}");
    wr_config_drop(config);
}

Test(config_calls, a_replaced_route_removes_its_handler_if_unused)
{
    struct wr_config *config = wr_config_new();
    route(&config, "a", "file", options_1);
    route(&config, "a", "file", options_2);
    cr_assert_eq(config->route_count, 1);
    cr_assert_eq(config->call_count, 1);
    cr_assert_str_eq(handlers_of(config), "file=file");
    cr_assert_str_eq(config->handlers[0].document->text, options_2);
    route(&config, "a", "null", NULL);
    cr_assert_str_eq(route_of(config, "a", false), "null");
    cr_assert_str_eq(handlers_of(config), "");
    wr_config_drop(config);
}

Test(config_calls, a_shared_handler_stays_for_other_routes)
{
    struct wr_config *config = wr_config_new();
    route(&config, "a", "file", options_1);
    route(&config, "b", "file", options_1);
    route(&config, "a", "file", options_2);
    cr_assert_str_eq(route_of(config, "a", false), "file:a");
    cr_assert_str_eq(route_of(config, "b", false), "file");
    cr_assert_str_eq(handlers_of(config), "file=file file:a=file");
    wr_config_drop(config);
}

Test(config_calls, a_route_is_removed)
{
    struct wr_config *config = make_from("{\"groups\": {\"a\": \"console\", \"*\": \"null\"}}");
    route(&config, "a", NULL, NULL);
    cr_assert_str_eq(route_of(config, "a", false), "null");
    route(&config, "*", NULL, NULL);
    cr_assert_str_eq(route_of(config, "a", false), "-");
    cr_assert_eq(config->route_count, 0);
    cr_assert_eq(config->call_count, 2);
    wr_config_drop(config);
}

Test(config_calls, everything_else_is_kept)
{
    struct wr_config *config =
        make_from("{\"settings\": {\"reload\": \"2s\", \"labels\": {\"host\": \"h1\"}}, \"handlers\": {\"*\":"
                  "{\"queue\": \"4MiB\"}, \"disk\": {\"type\": \"file\"}, \"spare\": {\"type\": \"null\"}},"
                  "\"groups\": {\"a\": [\"disk\", \"console\"], \"b\": \"disk\"}}");
    route(&config, "c", "null", NULL);
    cr_assert_eq(config->settings.reload_ns, INT64_C(2000000000));
    cr_assert_eq(config->settings.labels.count, 1);
    cr_assert_str_eq(config->settings.labels.items[0].key, "host");
    cr_assert_str_eq(config->settings.labels.items[0].value, "h1");
    cr_assert_str_eq(wr_node_member(config->defaults, "queue")->text, "4MiB");
    cr_assert_str_eq(handlers_of(config), "disk=file spare=null");
    cr_assert_str_eq(route_of(config, "a", false), "disk console");
    cr_assert_str_eq(route_of(config, "b", false), "disk");
    route(&config, "a", NULL, NULL);
    route(&config, "b", NULL, NULL);
    cr_assert_str_eq(handlers_of(config), "disk=file spare=null", "handlers of the document are kept");
    wr_config_drop(config);
}

Test(config_calls, settings_outlive_the_file_they_come_from)
{
    struct wr_config *config =
        make_from("{\"settings\": {\"journal\": \"/j\", \"status\": \"/s\", \"labels\": {\"host\": \"h\"}},"
                  "\"handlers\": {\"*\": {\"queue\": \"4MiB\"}}, \"groups\": {\"a\": \"console\"}}");
    for (int i = 0; i < 3; i++)
        route(&config, "b", "file", options_1);
    /* overwrites freed memory, to detect dangling pointers */
    struct wr_config *other =
        make_from("{\"settings\": {\"journal\": \"/x\", \"status\": \"/y\", \"labels\": {\"guest\": \"g\"}},"
                  "\"handlers\": {\"*\": {\"queue\": \"5MiB\"}}, \"groups\": {\"z\": \"null\"}}");
    cr_assert_str_eq(config->settings.journal, "/j");
    cr_assert_str_eq(config->settings.status, "/s");
    cr_assert_str_eq(config->settings.labels.items[0].key, "host");
    cr_assert_str_eq(wr_node_member(config->defaults, "queue")->text, "4MiB");
    cr_assert_str_eq(config->document->name, "weir.json");
    cr_assert_str_eq(route_of(config, "a", false), "console");
    wr_config_drop(other);
    wr_config_drop(config);
}

Test(config_calls, a_configuration_does_not_grow_with_the_calls_that_it_replaces)
{
    struct wr_config *config = wr_config_new();
    route(&config, "a", "file", options_1);
    struct mallinfo2 before = mallinfo2();
    for (int i = 0; i < 10000; i++)
        route(&config, "a", "file", i % 2 ? options_1 : options_2);
    cr_assert_eq(config->handler_count + config->route_count + config->call_count, 3);
    struct mallinfo2 after = mallinfo2();
    cr_assert_lt(after.uordblks, before.uordblks + 100000, "%zu bytes more", after.uordblks - before.uordblks);
    wr_config_drop(config);
}

Test(config_calls, the_given_configuration_is_unchanged)
{
    struct wr_config *config = make_from("{\"groups\": {\"a\": \"console\"}}");
    struct wr_config *next = wr_config_edit_route(config, "a", "file", options_1, &error);
    cr_assert_str_eq(route_of(config, "a", false), "console");
    cr_assert_eq(config->handler_count + config->call_count, 0);
    wr_config_drop(config);
    cr_assert_str_eq(wr_node_member(next->handlers[0].node, "path")->text, "1");
    wr_config_drop(next);
}

Test(config_calls, a_handler_of_the_document_with_the_types_name_is_not_used)
{
    struct wr_config *config =
        make_from("{\"handlers\": {\"file\": {\"type\": \"null\"}}, \"groups\": {\"b\": \"file\"}}");
    route(&config, "a", "file", NULL);
    cr_assert_str_eq(route_of(config, "a", false), "file:a");
    cr_assert_str_eq(handlers_of(config), "file=null file:a=file");
    wr_config_drop(config);
}

Test(config_calls, a_call_without_a_free_name_is_refused)
{
    struct wr_config *config =
        make_from("{\"handlers\": {\"file\": {\"type\": \"null\"}, \"file:a\": {\"type\": \"console\"}}}");
    expect_refused(config, "file", options_1, "handlers \"file\" and \"file:a\" both exist with other options");
    wr_config_drop(config);
}

Test(config_calls, inherit_is_not_a_type)
{
    struct wr_config *config = wr_config_new();
    expect_refused(config, "inherit", NULL,
                   "the handler type must not be \"inherit\": in a route, that is the parent's route");
    expect_refused(config, "inherit", "{}",
                   "the handler type must not be \"inherit\": in a route, that is the parent's route");
    wr_config_drop(config);
}

Test(config_calls, options_must_be_an_object)
{
    struct wr_config *config = wr_config_new();
    expect_refused(config, "file", "[]", "options:1:1: must be an object, got an array");
    expect_refused(config, "file", "\"path\"", "options:1:1: must be an object, got \"path\"");
    expect_refused(config, "file", "{\"path\": }",
                   "options:1:10: expected a value: an object, an array, a string in double quotes, a number, "
                   "true, false or "
                   "null");
    expect_refused(config, "file", "{\"a\": 1, \"a\": 2}", "options:1:10: duplicate key: \"a\"");
    expect_refused(config, "file", "", "options:1:1: the text ends where a value is expected");
    wr_config_drop(config);
}

/* ---- Rereading the file ---------------------------------------------------------------------- */

Test(config_calls, calls_are_applied_again_to_a_reread_file)
{
    struct wr_config *config =
        make_from("{\"groups\": {\"a\": \"console\", \"b\": \"console\", \"c\": \"console\"}}");
    route(&config, "a", "file", options_1);
    route(&config, "b", NULL, NULL);
    struct wr_config *again =
        reread(config, "{\"groups\": {\"a\": \"null\", \"b\": \"null\", \"c\": \"null\", \"*\": \"null\"}}");
    cr_assert_str_eq(route_of(again, "a", false), "file");
    cr_assert_str_eq(route_of(again, "b", true), "null");
    cr_assert_eq(again->route_count, 3, "b has no route of its own");
    cr_assert_str_eq(route_of(again, "c", false), "null");
    cr_assert_eq(again->call_count, 2);
    wr_config_drop(again);
    wr_config_drop(config);
}

Test(config_calls, without_calls_the_base_is_unchanged)
{
    struct wr_config *config = make_from("{\"groups\": {\"a\": \"console\"}}");
    struct wr_config *again = reread(config, "{\"groups\": {\"b\": \"null\"}}");
    cr_assert_str_eq(route_of(again, "a", false), "-");
    cr_assert_str_eq(route_of(again, "b", false), "null");
    wr_config_drop(again);
    wr_config_drop(config);
}

Test(config_calls, a_call_keeps_its_handlers_first_name)
{
    struct wr_config *config = wr_config_new();
    route(&config, "a", "file", options_1);
    route(&config, "b", "file", options_2);
    route(&config, "a", "file", options_3);
    cr_assert_str_eq(route_of(config, "a", false), "file");
    cr_assert_str_eq(route_of(config, "b", false), "file:b");
    struct wr_config *again = reread(config, "{}");
    cr_assert_str_eq(route_of(again, "a", false), "file",
                     "otherwise queued values would be delivered to the other destination");
    cr_assert_str_eq(route_of(again, "b", false), "file:b");
    wr_config_drop(again);
    route(&config, "a", NULL, NULL);
    route(&config, "c", "file", options_1);
    again = reread(config, "{}");
    cr_assert_str_eq(route_of(again, "b", false), "file:b");
    cr_assert_str_eq(route_of(again, "c", false), "file");
    cr_assert_str_eq(wr_config_find_handler(again, "file")->document->text, options_1);
    wr_config_drop(again);
    wr_config_drop(config);
}

Test(config_calls, a_call_without_options_keeps_its_handlers_first_name)
{
    struct wr_config *config = wr_config_new();
    route(&config, "a", "file", options_1);
    route(&config, "b", "file", NULL);
    route(&config, "a", NULL, NULL);
    struct wr_config *again = reread(config, "{}");
    cr_assert_str_eq(route_of(again, "b", false), "file:b");
    cr_assert_str_eq(handlers_of(again), "file:b=file");
    wr_config_drop(again);
    wr_config_drop(config);
}

Test(config_calls, a_name_that_the_reread_file_uses_is_not_kept)
{
    struct wr_config *config = wr_config_new();
    route(&config, "a", "file", options_1);
    struct wr_config *again =
        reread(config, "{\"handlers\": {\"file\": {\"type\": \"file\", \"path\": \"9\"}}}");
    cr_assert_str_eq(route_of(again, "a", false), "file:a");
    wr_config_drop(again);
    again = reread(config, "{\"groups\": {\"*\": \"file\"}}");
    cr_assert_str_eq(route_of(again, "a", false), "file:a");
    cr_assert_str_eq(route_of(again, "b", false), "file");
    wr_config_drop(again);
    wr_config_drop(config);
}

Test(config_calls, a_conflict_with_the_reread_file_is_reported)
{
    struct wr_config *config = wr_config_new();
    route(&config, "a", "file", options_1);
    struct wr_config *base =
        make_from("{\"handlers\": {\"file\": {\"type\": \"null\"}, \"file:a\": {\"type\": \"null\"}}}");
    cr_assert_null(wr_config_edit_carry_over(base, config, &error));
    cr_assert_str_eq(error.text, "handlers \"file\" and \"file:a\" both exist with other options");
    cr_assert_str_eq(handlers_of(base), "file=null file:a=null");
    wr_config_drop(base);
    wr_config_drop(config);
}
