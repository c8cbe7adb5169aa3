/* weir check: validates a configuration and explains where values go. */

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/command.h"
#include "config/config.h"
#include "config/option.h"
#include "config/transform.h"
#include "engine/plan.h"
#include "handler/plugin.h"
#include "os/log.h"
#include "probe.h"
#include "registry/name.h"
#include "routes.h"
#include "runtime/runtime.h"
#include "segment/segment.h"
#include "source/source.h"
#include "source/sources.h"
#include "text/buffer.h"
#include "text/common.h"
#include "text/error.h"
#include "text/units.h"
#include "warnings.h"

enum { NAME_WIDTH = 14, ERRORS_SHOWN = 20 };

/* A configuration, and what is wrong with it. */
struct checked {
    struct wr_config *config;
    struct wr_plan *plan;
    struct wr_source *sources;
    struct wr_unknown_keys unknown; /* of the sources */
    struct wr_log log;
    struct wr_segment_pool pool;
    struct wr_problems problems;
};

/* Making sources needs no more of a runtime than the plugins and the log. */
static bool make_sources(struct checked *checked, struct wr_error *error)
{
    static struct wr_runtime runtime;
    runtime.plugins.folders = command_plugins()->folders;
    wr_log_init(&runtime.log, secure_getenv("WEIR_LOG"));
    return wr_sources_make(&runtime, checked->config, &checked->sources, &checked->unknown, error);
}

static bool make_plan(struct checked *checked, struct wr_error *error)
{
    const struct wr_plan_site site = {
        .plugins = command_plugins(),
        .log = &checked->log,
        .pool = &checked->pool,
        .labels_number = 1,
    };
    checked->plan = wr_plan_new(checked->config, &site, error);
    if (checked->plan)
        wr_plan_log_skipped(checked->plan, &checked->log, true);
    return checked->plan;
}

/* Does what a program does when it configures: loads handler and source types, creates handlers and sources,
 * but opens nothing. Each step goes on after errors. */
static bool check(struct checked *checked, const char *file, struct wr_error *error)
{
    struct wr_problems *problems = &checked->problems;
    wr_log_init(&checked->log, secure_getenv("WEIR_LOG"));
    checked->config = command_read_config(file, problems, error);
    return checked->config && wr_problems_go_on(problems, make_plan(checked, error), error) &&
           make_sources(checked, error) && !problems->count;
}

static void print_errors(struct checked *checked, struct wr_error *error)
{
    struct wr_problems *problems = &checked->problems;
    bool are_all = wr_problems_go_on(problems, false, error);
    for (size_t i = 0; i < problems->count && i < ERRORS_SHOWN; i++)
        command_fail("%s", problems->items[i].text);
    if (problems->count > ERRORS_SHOWN)
        command_fail("and %s%zu more", are_all ? "" : "at least ", problems->count - ERRORS_SHOWN);
    else if (!are_all)
        command_fail("%s", error->text);
}

static void release(struct checked *checked)
{
    wr_sources_free(checked->sources);
    wr_unknown_keys_fini(&checked->unknown);
    wr_plan_free(checked->plan);
    wr_config_drop(checked->config);
    wr_problems_fini(&checked->problems);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static void put_files(struct wr_buffer *out, const struct wr_config *config)
{
    if (config->document_count < 2)
        return;
    wr_buffer_put_text(out, "files\n");
    for (size_t i = 0; i < config->document_count; i++) {
        wr_buffer_put_text(out, "  ");
        command_put_text(out, config->documents[i]->name);
        wr_buffer_put_text(out, "\n");
    }
}

/* The file that defines something, if there are several; file NULL: not known. */
static void put_origin(struct wr_buffer *out, const struct wr_config *config, const char *file)
{
    if (config->document_count < 2 || !file)
        return;
    wr_buffer_put_text(out, "  (");
    command_put_text(out, file);
    wr_buffer_put_text(out, ")");
}

static const char *file_of(const struct wr_node *node)
{
    return node ? node->document->name : NULL;
}

/* ---- Handlers -------------------------------------------------------------------------------- */

/* Options whose values differ from the defaults. */
static void put_options(struct wr_buffer *out, const struct wr_options_table *table, const void *target)
{
    struct wr_region keep = {0};
    void *defaults = wr_region_alloc(&keep, table->struct_bytes + 1);
    struct wr_options_fill fill = {
        .table = *table, .target = defaults, .environment = &wr_environment_empty, .keep = &keep};
    const weir_option *row;
    if (defaults)
        wr_options_set_defaults(&fill, NULL);
    for (size_t i = 0; defaults && (row = wr_options_row(table, i)); i++) {
        struct wr_buffer value = {0}, default_value = {0};
        wr_option_show(row, target, true, &value);
        wr_option_show(row, defaults, true, &default_value);
        bool differs =
            value.length != default_value.length || memcmp(value.data, default_value.data, value.length) != 0;
        if (differs) {
            wr_buffer_put_format(out, " %s=", row->name);
            wr_option_show(row, target, false, out);
        }
        wr_buffer_fini(&value);
        wr_buffer_fini(&default_value);
    }
    wr_region_fini(&keep);
}

static void put_handler(struct wr_buffer *out, const struct wr_config *config,
                        const struct wr_plan_handler *handler)
{
    const struct wr_config_handler *described = wr_config_find_handler(config, handler->name);
    wr_buffer_put_text(out, "  ");
    command_put_padded(out, handler->name, NAME_WIDTH);
    wr_buffer_put_format(out, " %s", handler->type->is.name);
    if (handler->instance) {
        const struct wr_instance *instance = handler->instance;
        struct wr_options_table common_options = wr_common_options_table();
        if (instance->format)
            wr_buffer_put_format(out, " format=%s", instance->format->name);
        put_options(out, &instance->type->options, instance->options);
        put_options(out, &common_options, &instance->common_options);
    }
    wr_buffer_put_text(out, handler->routed ? "" : "  (no route leads to it)");
    put_origin(out, config, described ? file_of(described->node) : NULL);
    wr_buffer_put_text(out, "\n");
}

/* ---- Sources --------------------------------------------------------------------------------- */

static const char *file_of_source(const struct wr_config *config, const char *name)
{
    for (size_t i = 0; i < config->source_count; i++)
        if (strcmp(config->sources[i].name, name) == 0)
            return file_of(config->sources[i].node);
    return NULL;
}

static void put_source(struct wr_buffer *out, const struct wr_config *config, const struct wr_source *source)
{
    struct wr_options_table common_options =
        wr_source_options_table(source->type->is.flags & WEIR_SOURCE_TYPE_PARSES);
    wr_buffer_put_text(out, "  ");
    command_put_padded(out, source->host_table.name, NAME_WIDTH);
    wr_buffer_put_format(out, " %s", source->type->is.name);
    put_options(out, &source->type->options, source->own_options);
    put_options(out, &common_options, &source->options);
    put_origin(out, config, file_of_source(config, source->host_table.name));
    wr_buffer_put_text(out, "\n");
}

/* ---- Routes ---------------------------------------------------------------------------------- */

static void put_group(struct wr_buffer *out, const char *before, const char *group, const char *after)
{
    wr_buffer_put_format(out, "%s\"", before);
    command_put_text(out, group);
    wr_buffer_put_format(out, "\"%s", after);
}

struct listing {
    struct wr_buffer *out;
    const struct wr_plan *plan;
    const struct wr_config_route *shown;
    int count;
};

static bool is_left_out(const struct wr_plan *plan, const char *handler)
{
    for (size_t i = 0; i < plan->skipped_count; i++)
        if (strcmp(plan->skipped[i].name, handler) == 0)
            return true;
    return false;
}

/* Those of another route are shown with its group. */
static void put_item(void *ctx, const struct routes_item *item)
{
    struct listing *listing = ctx;
    struct wr_buffer changes = {0};
    wr_buffer_put_text(listing->out, listing->count++ ? ", " : "");
    command_put_text(listing->out, item->handler);
    if (is_left_out(listing->plan, item->handler))
        wr_buffer_put_text(listing->out, " (left out)");
    if (item->transform) {
        wr_transform_show(item->transform, &changes);
        wr_buffer_put_format(listing->out, " (%s)", wr_buffer_text(&changes) ? changes.data : "");
        wr_buffer_fini(&changes);
    }
    if (item->route != listing->shown)
        put_group(listing->out, " (inherited from ", item->route->group, ")");
}

static void put_handlers(struct wr_buffer *out, const struct checked *checked,
                         const struct wr_config_route *route)
{
    struct listing listing = {out, checked->plan, route, 0};
    routes_visit(checked->config, route, put_item, &listing);
    wr_buffer_put_text(out, listing.count ? "" : "(unrouted)");
    put_origin(out, checked->config, route ? file_of(route->node) : NULL);
    wr_buffer_put_text(out, "\n");
}

static void put_route(struct wr_buffer *out, const struct checked *checked, const struct wr_config_route *route)
{
    wr_buffer_put_text(out, "  ");
    command_put_padded(out, route->group, NAME_WIDTH);
    wr_buffer_put_text(out, " -> ");
    put_handlers(out, checked, route);
}

static void explain_group(struct wr_buffer *out, const struct checked *checked, const char *group)
{
    const struct wr_config_route *route = wr_config_find_route(checked->config, group, false);
    command_put_text(out, group);
    wr_buffer_put_text(out, " -> ");
    put_handlers(out, checked, route);
    if (!route && wr_name_is_own_group(group))
        wr_buffer_put_text(out, "  because no route names it: \"*\" does not apply to weir's own metrics\n");
    else if (!route)
        wr_buffer_put_text(out, "  because neither the group, nor a parent of it, nor \"*\" has a route\n");
    else if (strcmp(route->group, group) == 0)
        wr_buffer_put_text(out, "  by its own route\n");
    else if (strcmp(route->group, "*") == 0)
        wr_buffer_put_text(out, "  by the default route \"*\"\n");
    else
        put_group(out, "  by the route of its parent ", route->group, "\n");
}

/* ---- Metrics --------------------------------------------------------------------------------- */

static void put_meaning(struct wr_buffer *out, const struct wr_config *config,
                        const struct wr_metric_rule *rule)
{
    wr_buffer_put_text(out, rule->has_instrument ? wr_family_instrument_name(rule->meaning.instrument)
                                                 : "instrument as declared");
    if (rule->meaning.unit) {
        wr_buffer_put_text(out, ", unit ");
        command_put_text(out, rule->meaning.unit);
    }
    if (rule->has_buckets)
        wr_buffer_put_format(out, ", %zu buckets", rule->meaning.bucket_count);
    if (rule->max_series)
        wr_buffer_put_format(out, ", at most %u label sets", rule->max_series);
    if (rule->meaning.merge != WR_MERGE_LAST)
        wr_buffer_put_format(out, ", merged to the %s",
                             rule->meaning.merge == WR_MERGE_SUM ? "sum" : "maximum");
    put_origin(out, config, rule->file);
    wr_buffer_put_text(out, "\n");
}

static void put_rule(struct wr_buffer *out, const struct wr_config *config, const struct wr_metric_rule *rule)
{
    wr_buffer_put_text(out, "  ");
    command_put_padded(out, rule->group, NAME_WIDTH);
    wr_buffer_put_text(out, " ");
    command_put_padded(out, rule->pattern, NAME_WIDTH);
    wr_buffer_put_text(out, " ");
    put_meaning(out, config, rule);
}

static void explain_name(struct wr_buffer *out, const struct wr_config *config, const char *group,
                         const char *name)
{
    const struct wr_metric_rule *rule = wr_metric_rules_find(&config->metrics, group, name);
    command_put_text(out, name);
    wr_buffer_put_text(out, ": ");
    if (!rule) {
        wr_buffer_put_text(out, "as the program declares it: no entry of \"metrics\" matches\n");
        return;
    }
    put_meaning(out, config, rule);
    put_group(out, "  by the entry ", rule->pattern, "");
    put_group(out, " of ", rule->group, " in \"metrics\"\n");
}

/* ---- What becomes of a name ------------------------------------------------------------------ */

struct naming {
    struct wr_buffer *out;
    const char *name;
};

static void put_fate(void *ctx, const struct routes_item *item)
{
    const struct naming *naming = ctx;
    char renamed[WR_NAME_LONGEST + 1];
    struct wr_buffer changes = {0};
    if (!item->transform)
        return;
    wr_buffer_put_text(naming->out, "  ");
    command_put_text(naming->out, item->handler);
    if (!wr_transform_passes(item->transform, naming->name)) {
        wr_buffer_put_text(naming->out, ": not sent, counted as filtered");
    } else if (!wr_transform_rename(item->transform, naming->name, renamed)) {
        wr_buffer_put_text(naming->out, ": not sent, as the new name would not have 1 to 255 bytes");
    } else {
        put_group(naming->out, ": as ", renamed, "");
        wr_transform_show_changes(item->transform, &changes);
        if (changes.length)
            wr_buffer_put_format(naming->out, ", %s", wr_buffer_text(&changes) ? changes.data : "");
        wr_buffer_fini(&changes);
    }
    put_group(naming->out, ", by the route of ", item->route->group, "\n");
}

/* For the handlers of objects in routes; the others get the values as they are. */
static void explain_fate(struct wr_buffer *out, const struct wr_config *config, const char *group,
                         const char *name)
{
    struct naming naming = {out, name};
    routes_visit(config, wr_config_find_route(config, group, false), put_fate, &naming);
}

static void put_unknown(struct wr_buffer *out, const struct wr_unknown_keys *keys)
{
    for (size_t i = 0; i < keys->count; i++)
        wr_buffer_put_format(out, "  %s\n", keys->texts[i]);
    if (keys->more)
        wr_buffer_put_format(out, "  %zu more\n", keys->more);
}

static void put_all(struct wr_buffer *out, const struct checked *checked)
{
    const struct wr_config *config = checked->config;
    put_files(out, config);
    if (config->unknown.count || checked->plan->unknown.count || checked->unknown.count)
        wr_buffer_put_text(out, "unknown keys\n");
    put_unknown(out, &config->unknown);
    put_unknown(out, &checked->plan->unknown);
    put_unknown(out, &checked->unknown);
    warnings_put(out, checked->plan, checked->sources);
    if (checked->sources)
        wr_buffer_put_text(out, "sources\n");
    for (const struct wr_source *source = checked->sources; source; source = source->next)
        put_source(out, config, source);
    wr_buffer_put_text(out, "handlers\n");
    for (size_t i = 0; i < checked->plan->count; i++)
        put_handler(out, config, &checked->plan->handlers[i]);
    wr_buffer_put_text(out, "groups\n");
    for (size_t i = 0; i < config->route_count; i++)
        put_route(out, checked, &config->routes[i]);
    if (!config->route_count)
        wr_buffer_put_text(out, "  no group has a route: nothing is delivered\n");
    if (config->metrics.count)
        wr_buffer_put_text(out, "metrics\n");
    for (size_t i = 0; i < config->metrics.count; i++)
        put_rule(out, config, &config->metrics.items[i]);
}

/* ---- The command ----------------------------------------------------------------------------- */

struct request {
    const char *file, *group, *name;
    bool open;
    int64_t timeout_ns;
};

static struct probe_result put_report(struct wr_buffer *out, const struct request *request,
                                      const struct checked *checked)
{
    struct probe_result result = {.reachable = true};
    if (request->group) {
        explain_group(out, checked, request->group);
        if (request->name)
            explain_name(out, checked->config, request->group, request->name);
        if (request->name)
            explain_fate(out, checked->config, request->group, request->name);
        return result;
    }
    command_put_text(out, request->file ? request->file : "WEIR_CONFIG");
    wr_buffer_put_text(out, ": valid\n");
    if (request->open)
        return probe_all(checked->plan, checked->sources, request->timeout_ns, out);
    put_all(out, checked);
    return result;
}

static int report(const struct request *request)
{
    struct checked checked = {0};
    struct wr_error error = {0};
    struct wr_buffer out = {0};
    struct probe_result probed = {0};
    int result = EXIT_FAILURE;
    if (check(&checked, request->file, &error)) {
        probed = put_report(&out, request, &checked);
        result = command_finish(&out, probed.reachable ? EXIT_SUCCESS : EXIT_FAILURE);
    } else {
        print_errors(&checked, &error);
    }
    if (probed.stuck)
        _exit(EXIT_FAILURE); /* a thread is still inside a plugin: nothing can be freed */
    release(&checked);
    return result;
}

/* Returns COMMAND_CONTINUE or the exit code. */
static int read_arguments(const struct command *command, struct request *request, int argc, char **argv)
{
    static const struct option options[] = {
        {"group", required_argument, NULL, 'g'}, {"name", required_argument, NULL, 'n'},
        {"open", no_argument, NULL, 'o'},        {"timeout", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},        {0}};
    for (int option; (option = getopt_long(argc, argv, "g:n:ot:h", options, NULL)) != -1;) {
        switch (option) {
        case 'g': request->group = optarg; break;
        case 'n': request->name = optarg; break;
        case 'o': request->open = true; break;
        case 't':
            if (!wr_units_read_duration(optarg, &request->timeout_ns))
                return command_refuse(command, "--timeout: \"%s\" is not " WR_UNITS_DURATION_HINT, optarg);
            break;
        case 'h': return command_print_help(command, stdout);
        default: return command_show_usage(command);
        }
    }
    if (argc - optind > 1)
        return command_refuse(command, "at most one FILE is allowed");
    request->file = argv[optind];
    return COMMAND_CONTINUE;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.timeout_ns = 10 * WR_NS_PER_S};
    struct wr_error error;
    int result = read_arguments(command, &request, argc, argv);
    if (result != COMMAND_CONTINUE)
        return result;
    if (request.group && request.open)
        return command_refuse(command, "--open and --group cannot be combined");
    if (request.name && !request.group)
        return command_refuse(command, "--name needs --group");
    if (request.name && !wr_name_check(request.name, "name", &error))
        return command_refuse(command, "%s", error.text);
    if (request.group && !wr_name_check_group(request.group, &error))
        return command_refuse(command, "%s", error.text);
    return report(&request);
}

const struct command command_check = {
    .name = "check",
    .arguments = "[FILE] [-g GROUP [-n NAME] | -o [-t TIME]]",
    .summary = "Validates a configuration, explains where values go, and tries destinations.",
    .help = "\n  -g, --group GROUP   the handlers that the group reaches, and why\n"
            "  -n, --name NAME     with --group: what \"metrics\" sets for the name, what objects in the route "
            "make\n"
            "                      of it, and why\n"
            "  -o, --open          tries the destination of each handler; nothing is sent\n"
            "  -t, --timeout TIME  how long --open may take (10s)\n"
            "  -h, --help          this text\n\n"
            "Without FILE the configuration is that of WEIR_CONFIG. Handlers and sources are created as in a\n"
            "program, but nothing is opened without --open. Exit status 1: the configuration is invalid, "
            "or\n"
            "a destination cannot be reached.\n",
    .run = run,
};
