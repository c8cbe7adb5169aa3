/* config: configurations from texts. */
#include <stdlib.h>
#include <unistd.h>

#include "text/common.h"
#include "configs.h"
#include "text/buffer.h"
#include "config/config_read.h"

Test(config, the_empty_configuration_has_default_settings)
{
    struct wr_config *config = wr_config_new();
    cr_assert_eq(config->settings.shutdown_timeout_ns, 5 * WR_NS_PER_S);
    cr_assert_eq(config->settings.reload_ns, 0);
    cr_assert_eq(config->settings.stats_interval_ns, 10 * WR_NS_PER_S);
    cr_assert_eq(config->settings.max_series, 100000);
    cr_assert_eq(config->settings.clock, WR_CLOCK_AUTO);
    cr_assert_eq(config->settings.labels.count, 0);
    cr_assert_eq(config->handler_count + config->route_count + config->call_count, 0);
    cr_assert_null(config->path);
    cr_assert_null(config->defaults);
    cr_assert_null(config->document);
    wr_config_drop(config);
}

Test(config, an_empty_object_is_a_configuration)
{
    struct wr_config *config = make_from("{}");
    cr_assert_eq(config->settings.shutdown_timeout_ns, 5 * WR_NS_PER_S);
    cr_assert_eq(config->handler_count + config->route_count, 0);
    cr_assert_str_eq(config->document->name, "weir.json");
    cr_assert_null(config->path);
    wr_config_drop(config);
}

Test(config, settings_are_read)
{
    setenv("WEIR_UNIT", "h1", 1);
    struct wr_config *config =
        make_from("{\"settings\": {\"shutdown_timeout\": \"0s\", \"reload\": \"2s\", \"stats_interval\":"
                  "\"1d\", \"max_series\": 30000000, \"clock\": \"system\", \"labels\": {\"host\": "
                  "\"${WEIR_UNIT}\", \"az\": \"\"}}}");
    cr_assert_eq(config->settings.shutdown_timeout_ns, 0);
    cr_assert_eq(config->settings.reload_ns, 2 * WR_NS_PER_S);
    cr_assert_eq(config->settings.stats_interval_ns, 86400 * WR_NS_PER_S);
    cr_assert_eq(config->settings.max_series, 30000000);
    cr_assert_eq(config->settings.clock, WR_CLOCK_SYSTEM);
    cr_assert_eq(config->settings.labels.count, 2);
    cr_assert_str_eq(config->settings.labels.items[0].key, "host");
    cr_assert_str_eq(config->settings.labels.items[0].value, "h1");
    cr_assert_str_eq(config->settings.labels.items[1].value, "");
    wr_config_drop(config);
}

Test(config, handlers_keep_their_order)
{
    struct wr_config *config = make_from(
        "{\"handlers\": {\"push\": {\"type\": \"http\", \"url\": \"x\"},\n"
        "\"a.b c\": {\"plugin\": \"/p/file.so\", \"type\": \"file\"}, \"null\": {\"type\": \"null\"}}}");
    cr_assert_str_eq(handlers_of(config), "push=http a.b c=file null=null");
    const struct wr_config_handler *push = wr_config_find_handler(config, "push");
    cr_assert_null(push->plugin);
    cr_assert_null(push->document);
    cr_assert_str_eq(wr_node_member(push->node, "url")->text, "x");
    cr_assert_eq(push->environment, config->environment);
    cr_assert_str_eq(wr_config_find_handler(config, "a.b c")->plugin, "/p/file.so");
    cr_assert_null(wr_config_find_handler(config, "pus"));
    cr_assert_null(wr_config_find_handler(config, "*"));
    wr_config_drop(config);
}

Test(config, type_and_plugin_are_expanded)
{
    setenv("WEIR_UNIT", "file", 1);
    struct wr_config *config =
        make_from("{\"handlers\": {\"a\": {\"type\": \"${WEIR_UNIT}\", \"plugin\": \"/p/${WEIR_UNIT}.so\"}}}");
    cr_assert_str_eq(config->handlers[0].type, "file");
    cr_assert_str_eq(config->handlers[0].plugin, "/p/file.so");
    wr_config_drop(config);
}

Test(config, the_handler_asterisk_holds_defaults)
{
    struct wr_config *config =
        make_from("{\"handlers\": {\"*\": {\"queue\": \"4MiB\", \"format\": \"json\"}}}");
    cr_assert_eq(config->handler_count, 0);
    cr_assert_str_eq(wr_node_member(config->defaults, "queue")->text, "4MiB");
    wr_config_drop(config);
}

Test(config, routes_are_names_and_arrays_of_names)
{
    struct wr_config *config =
        make_from("{\"groups\": {\"*\": \"console\", \"my_app\": [\"disk\", \"push\"],"
                  "\"my_app.db\": [\"inherit\", \"console\"], \"my_app.noise\": [], \"x\": \"inherit\"}}");
    cr_assert_eq(config->route_count, 5);
    cr_assert_str_eq(route_of(config, "*", false), "console");
    cr_assert_str_eq(route_of(config, "my_app", false), "disk push");
    cr_assert_str_eq(route_of(config, "my_app.db", false), "inherit console");
    cr_assert_str_eq(route_of(config, "my_app.noise", false), "");
    cr_assert_str_eq(route_of(config, "x", false), "inherit");
    cr_assert_str_eq(config->routes[1].nodes[0]->parent->key, "my_app");
    wr_config_drop(config);
}

Test(config, there_may_be_many_handlers_and_routes)
{
    static char text[100000] = "{\"handlers\": {";
    for (int i = 0; i < 500; i++)
        sprintf(text + strlen(text), "%s\"h%d\": {\"type\": \"null\"}", i ? ", " : "", i);
    strcat(text, "}, \"groups\": {");
    for (int i = 0; i < 500; i++)
        sprintf(text + strlen(text), "%s\"g%d\": \"h%d\"", i ? ", " : "", i, i);
    strcat(text, "}}");
    struct wr_config *config = make_from(text);
    cr_assert_eq(config->handler_count, 500);
    cr_assert_eq(config->route_count, 500);
    for (int i = 0; i < 500; i++) {
        char group[20], handler[20];
        sprintf(group, "g%d", i);
        sprintf(handler, "h%d", i);
        cr_assert_str_eq(route_of(config, group, false), handler);
        cr_assert_str_eq(config->handlers[i].name, handler);
    }
    wr_config_drop(config);
}

Test(config, sections_may_come_in_any_order_with_comments)
{
    struct wr_config *config = make_from(
        "// weir\n{\"groups\": {\"a\": \"h\"}, /* below */ \"handlers\": {\"h\": {\"type\": \"null\"}},"
        "\"$schema\": \"weir.schema.json\", \"settings\": {}}");
    cr_assert_str_eq(route_of(config, "a", false), "h");
    cr_assert_str_eq(handlers_of(config), "h=null");
    wr_config_drop(config);
}

Test(config, the_text_needs_no_terminating_nul)
{
    char *text = malloc(2);
    memcpy(text, "{}", 2);
    struct wr_config *config = wr_config_read_text("weir.json", text, 2, NULL, &error);
    cr_assert_not_null(config, "%s", error.text);
    free(text);
    wr_config_drop(config);
}

Test(config, it_can_be_read_with_an_earlier_environment)
{
    setenv("WEIR_UNIT", "null", 1);
    struct wr_environment *before = wr_environment_take();
    setenv("WEIR_UNIT", "console", 1);
    static const char text[] = "{\"handlers\": {\"a\": {\"type\": \"${WEIR_UNIT}\"}}}";
    struct wr_config *config = wr_config_read_text("weir.json", text, strlen(text), before, &error);
    cr_assert_str_eq(config->handlers[0].type, "null");
    cr_assert_eq(config->environment, before);
    wr_environment_drop(before);
    struct wr_buffer value = {0};
    cr_assert(wr_expand(config->environment, "${WEIR_UNIT}", &value, NULL, &error));
    cr_assert_str_eq(wr_buffer_text(&value), "null");
    wr_buffer_fini(&value);
    wr_config_drop(config);
}

Test(config, it_is_freed_with_its_last_reference)
{
    struct wr_config *config = make_from("{\"groups\": {\"a\": \"null\"}}");
    wr_config_hold(config);
    wr_config_drop(config);
    cr_assert_str_eq(route_of(config, "a", false), "null");
    wr_config_drop(config);
    wr_config_drop(NULL);
}
