/* weir check: is a configuration right, and where do values go? */

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text/buffer.h"
#include "common/command.h"
#include "text/common.h"
#include "config/config.h"
#include "text/error.h"
#include "os/log.h"
#include "registry/name.h"
#include "config/option.h"
#include "config/parse.h"
#include "engine/plan.h"
#include "handler/plugin.h"
#include "probe.h"
#include "segment/segment.h"
#include "text/units.h"

/* A configuration that was found to be right. */
struct checked {
    struct wr_config *config;
    struct wr_plan *plan;
    struct wr_log log;
    struct wr_segment_pool pool;
};

static struct wr_config *read_config(const char *file, struct wr_error *error)
{
    if (file)
        return wr_parse_file(file, NULL, error);
    const char *text = secure_getenv("WEIR_CONFIG");
    if (!text || !*text) {
        wr_error_set(error, WEIR_ERR_CONFIG, "no FILE is given, and WEIR_CONFIG is not set");
        return NULL;
    }
    return *text == '{' ? wr_parse_text("WEIR_CONFIG", text, strlen(text), NULL, error)
                        : wr_parse_file(text, NULL, error);
}

/* As far as a program would go that puts it in force: handler types are loaded, handlers created, nothing
 * opened. */
static bool check(struct checked *checked, const char *file, struct wr_error *error)
{
    wr_log_init(&checked->log, secure_getenv("WEIR_LOG"));
    checked->config = read_config(file, error);
    if (!checked->config)
        return false;
    const struct wr_plan_site site = {
        .plugins = command_plugins(),
        .log = &checked->log,
        .pool = &checked->pool,
        .labels_number = 1,
    };
    checked->plan = wr_plan_new(checked->config, &site, error);
    return checked->plan;
}

static void let_go(struct checked *checked)
{
    wr_plan_free(checked->plan);
    wr_config_drop(checked->config);
}

/* ---- Handlers -------------------------------------------------------------------------------- */

/* Only what differs from the defaults tells something. */
static void put_options(struct wr_buffer *out, const struct wr_options_table *table, const void *target)
{
    struct wr_region keep = {0};
    const char *no_entries[] = {NULL};
    const struct wr_environment environment = {.entries = no_entries, .folder = "/"};
    void *standard = wr_region_alloc(&keep, table->struct_bytes + 1);
    struct wr_options_fill fill = {*table, standard, &environment, &keep, NULL};
    const weir_option *row;
    if (standard)
        wr_options_set_defaults(&fill, NULL);
    for (size_t i = 0; standard && (row = wr_options_row(table, i)); i++) {
        struct wr_buffer is = {0}, was = {0};
        wr_option_show(row, target, true, &is);
        wr_option_show(row, standard, true, &was);
        bool differs = is.length != was.length || memcmp(is.data, was.data, is.length) != 0;
        if (differs) {
            wr_buffer_put_format(out, " %s=", row->name);
            wr_option_show(row, target, false, out);
        }
        wr_buffer_fini(&is);
        wr_buffer_fini(&was);
    }
    wr_region_fini(&keep);
}

static void put_handler(struct wr_buffer *out, const struct wr_plan_handler *handler)
{
    wr_buffer_put_format(out, "  %-14s %s", handler->name, handler->type->is.name);
    if (handler->instance) {
        const struct wr_instance *instance = handler->instance;
        struct wr_options_table common_options = wr_common_options_table();
        if (instance->format)
            wr_buffer_put_format(out, " format=%s", instance->format->name);
        put_options(out, &instance->type->options, instance->options);
        put_options(out, &common_options, &instance->common_options);
    }
    wr_buffer_put_text(out, handler->routed ? "\n" : "  (no route leads to it)\n");
}

/* ---- Routes ---------------------------------------------------------------------------------- */

/* The handlers of a route, each with the route that it comes from, where that is another one. */
static void put_items(struct wr_buffer *out, const struct wr_config *config,
                      const struct wr_config_route *route, const struct wr_config_route *asked, int *count)
{
    for (size_t i = 0; route && i < route->count; i++) {
        if (strcmp(route->items[i], "inherit") == 0) {
            put_items(out, config, wr_config_find_route(config, route->group, true), asked, count);
            continue;
        }
        wr_buffer_put_format(out, "%s%s", (*count)++ ? ", " : "", route->items[i]);
        if (route != asked)
            wr_buffer_put_format(out, " (inherited from \"%s\")", route->group);
    }
}

static void put_route(struct wr_buffer *out, const struct wr_config *config,
                      const struct wr_config_route *route)
{
    int count = 0;
    wr_buffer_put_format(out, "  %-14s -> ", route->group);
    put_items(out, config, route, route, &count);
    wr_buffer_put_text(out, count ? "\n" : "nobody\n");
}

static void explain_group(struct wr_buffer *out, const struct wr_config *config, const char *group)
{
    const struct wr_config_route *route = wr_config_find_route(config, group, false);
    int count = 0;
    wr_buffer_put_format(out, "%s -> ", group);
    put_items(out, config, route, route, &count);
    wr_buffer_put_text(out, count ? "\n" : "nobody\n");
    if (!route && strncmp(group, "weir", 4) == 0 && (group[4] == '.' || !group[4]))
        wr_buffer_put_text(out, "  because no route names it: weir's own metrics do not follow \"*\"\n");
    else if (!route)
        wr_buffer_put_text(out,
                           "  because neither it, nor a group that it is inside of, nor \"*\" has a route\n");
    else if (strcmp(route->group, group) == 0)
        wr_buffer_put_text(out, "  by its own route\n");
    else if (strcmp(route->group, "*") == 0)
        wr_buffer_put_text(out, "  by the default route \"*\"\n");
    else
        wr_buffer_put_format(out, "  by the route of \"%s\", which it is inside of\n", route->group);
}

static void put_all(struct wr_buffer *out, const struct checked *checked)
{
    const struct wr_config *config = checked->config;
    wr_buffer_put_text(out, "handlers\n");
    for (size_t i = 0; i < checked->plan->count; i++)
        put_handler(out, &checked->plan->handlers[i]);
    wr_buffer_put_text(out, "groups\n");
    for (size_t i = 0; i < config->route_count; i++)
        put_route(out, config, &config->routes[i]);
    if (!config->route_count)
        wr_buffer_put_text(out, "  none has a route: nothing is delivered\n");
}

/* ---- The command ----------------------------------------------------------------------------- */

struct request {
    const char *file, *group;
    bool open;
    int64_t timeout_ns;
};

static struct probe_result put_answer(struct wr_buffer *out, const struct request *request,
                                      const struct checked *checked)
{
    if (request->group) {
        explain_group(out, checked->config, request->group);
        return (struct probe_result){.good = true};
    }
    wr_buffer_put_format(out, "%s: good\n", request->file ? request->file : "WEIR_CONFIG");
    if (request->open) {
        wr_buffer_put_text(out, "destinations\n");
        return probe_all(checked->plan, request->timeout_ns, out);
    }
    put_all(out, checked);
    return (struct probe_result){.good = true};
}

static int answer(const struct request *request)
{
    struct checked checked = {0};
    struct wr_error error = {0};
    struct wr_buffer out = {0};
    struct probe_result result = {0};
    bool right = check(&checked, request->file, &error);
    if (right)
        result = put_answer(&out, request, &checked);
    bool written = !right || command_write(&out);
    if (result.stuck)
        _exit(EXIT_NEGATIVE); /* with a thread inside foreign code nothing can be cleaned up */
    let_go(&checked);
    if (!right)
        return command_fail("%s", error.text);
    if (!written)
        return command_fail("standard output cannot be written");
    return result.good ? EXIT_GOOD : EXIT_NEGATIVE;
}

/* COMMAND_GOES_ON, or how `weir` ends. */
static int parse(const struct command *command, struct request *request, int argc, char **argv)
{
    static const struct option options[] = {{"group", required_argument, NULL, 'g'},
                                            {"open", no_argument, NULL, 'o'},
                                            {"timeout", required_argument, NULL, 't'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    for (int option; (option = getopt_long(argc, argv, "g:ot:h", options, NULL)) != -1;) {
        switch (option) {
        case 'g': request->group = optarg; break;
        case 'o': request->open = true; break;
        case 't':
            if (!wr_units_parse_duration(optarg, &request->timeout_ns))
                return command_refuse(command, "--timeout: \"%s\" is not " WR_UNITS_DURATION_HINT, optarg);
            break;
        case 'h': command_print_help(command, stdout); return EXIT_GOOD;
        default: return command_show_usage(command);
        }
    }
    if (argc - optind > 1)
        return command_refuse(command, "one FILE at most");
    request->file = argv[optind];
    return COMMAND_GOES_ON;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.timeout_ns = 10 * WR_NS_PER_S};
    struct wr_error error;
    int result = parse(command, &request, argc, argv);
    if (result != COMMAND_GOES_ON)
        return result;
    if (request.group && request.open)
        return command_refuse(command, "--open and --group do not go together");
    if (request.group && !wr_name_check_group(request.group, &error))
        return command_refuse(command, "%s", error.text);
    return answer(&request);
}

const struct command command_check = {
    .name = "check",
    .arguments = "[FILE] [-g GROUP | -o [-t TIME]]",
    .summary = "Checks a configuration, explains where values go, and tries destinations.",
    .help = "\n  -g, --group GROUP   which handlers the group reaches, and why\n"
            "  -o, --open          tries the destination of each handler; nothing is sent there\n"
            "  -t, --timeout TIME  how long that may take (10s)\n"
            "  -h, --help          this text\n\n"
            "Without FILE the configuration is that of WEIR_CONFIG. Handler types are loaded and handlers "
            "created, as in a\n"
            "program; only with --open is anything opened. Exit status 1: the configuration is wrong, or a "
            "destination\n"
            "cannot be reached.\n",
    .run = run,
};
