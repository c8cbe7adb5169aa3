#include "engine/plan.h"

#include <stdlib.h>
#include <string.h>

#include "config/expand.h"
#include "config/options.h"
#include "handler/unavailable.h"
#include "registry/labels.h"
#include "registry/labels_walk.h"
#include "text/buffer.h"
#include "text/error.h"
#include "text/name_index.h"
#include "text/suggest.h"
#include "text/utf8.h"

enum { SHOWN_ROOM = 200 };

struct planner {
    struct wr_plan *plan;
    const struct wr_plan_site *site;
    struct wr_error *error;
    struct wr_name_index skipped; /* optional handlers whose types are not installed, and those with errors */
    struct wr_name_index lanes;   /* names of the engine's lanes, numbers in lane_list */
    struct wr_lane **lane_list;
    struct wr_expanded expanded;
};

static bool go_on(const struct planner *p, bool done)
{
    return wr_problems_go_on(p->plan->config->problems, done, p->error);
}

const struct wr_plan_handler *wr_plan_find(const struct wr_plan *plan, const char *name)
{
    size_t number = wr_name_index_find(&plan->names, name, strlen(name));
    return number == SIZE_MAX ? NULL : &plan->handlers[number];
}

/* ---- Types ----------------------------------------------------------------------------------- */

/* The type could not be loaded: prefixes the problem with the place of the handler's type. */
static bool fail_type(const struct wr_config_handler *handler, const struct wr_error *problem,
                      struct wr_error *error)
{
    const struct wr_node *node = wr_node_member(handler->node, handler->plugin ? "plugin" : "type");
    if (node)
        wr_node_error(node, error, "%s", problem->text);
    else
        wr_error_set(error, problem->code, "%s", problem->text);
    error->code = problem->code;
    return false;
}

static bool add_handler(struct planner *p, const char *name, struct wr_type *type,
                        const struct wr_plan_item *item)
{
    if (!wr_name_index_add(&p->plan->names, name, p->plan->count))
        return wr_error_no_memory(p->error, NULL);
    p->plan->handlers[p->plan->count++] = (struct wr_plan_handler){
        .name = name,
        .type = type,
        .item = *item,
        .routed = item->route,
        .ending = WR_LANE_LIVES,
    };
    return true;
}

/* The handler's own value, or that of all handlers. Returns false if neither is valid: that is reported when
 * the handler is made. */
static bool is_optional(struct planner *p, const struct wr_config_handler *handler)
{
    struct wr_common_options common_options = {0};
    const struct wr_options_table table = wr_common_options_table();
    const weir_option *row = wr_options_find(&table, "optional");
    struct wr_region keep = {0};
    struct wr_error unused = {0};
    const struct wr_options_fill fill = {.target = &common_options,
                                         .environment = handler->environment,
                                         .keep = &keep,
                                         .expanded = &p->expanded};
    const struct wr_node *node = wr_node_member(handler->node, row->name);
    const struct wr_config *home = handler->home ? handler->home : p->plan->config;
    if (!node)
        node = wr_node_member(home->defaults, row->name);
    bool is_valid = node && handler->environment && wr_options_set_node(&fill, row, node, &unused);
    wr_region_fini(&keep);
    return is_valid && common_options.optional;
}

/* Routes may name it. */
static bool hide(struct planner *p, const char *name)
{
    return wr_name_index_add(&p->skipped, name, 0) || wr_error_no_memory(p->error, NULL);
}

static bool skip(struct planner *p, const struct wr_config_handler *handler, const struct wr_error *problem)
{
    struct wr_plan *plan = p->plan;
    const char *reason = wr_region_text(&plan->keep, problem->text, strlen(problem->text));
    if (!reason)
        return wr_error_no_memory(p->error, NULL);
    plan->skipped[plan->skipped_count++] = (struct wr_plan_skipped){handler->name, reason, handler->document};
    return hide(p, handler->name);
}

/* In a forked child the type may be missing: such a handler has no type. */
static bool add_described(struct planner *p, const struct wr_config_handler *handler)
{
    struct wr_error problem = {0};
    if (!handler->type)
        return hide(p, handler->name);
    struct wr_type *type =
        wr_plugins_find(p->site->plugins, &wr_plugins_handlers, handler->type, handler->plugin, &problem);
    if (!type && problem.is_missing && is_optional(p, handler))
        return skip(p, handler, &problem);
    if (!type && !p->site->in_child)
        return go_on(p, fail_type(handler, &problem, p->error)) && hide(p, handler->name);
    return add_handler(p, handler->name, type, &(struct wr_plan_item){0});
}

/* The item of a route is neither a handler nor a type. */
static bool refuse_item(struct planner *p, const struct wr_config_route *route, size_t item,
                        const struct wr_error *problem)
{
    const char *name = route->items[item];
    const struct wr_config *config = p->plan->config;
    struct wr_suggest suggest;
    char nearest[SHOWN_ROOM], shown[SHOWN_ROOM];
    wr_suggest_init(&suggest, name);
    for (size_t i = 0; i < config->handler_count; i++)
        wr_suggest_try(&suggest, config->handlers[i].name);
    const struct wr_node *node = route->nodes ? route->nodes[item] : NULL;
    wr_plugins_suggest(p->site->plugins, &suggest);
    bool is_type = wr_plugins_is_type_name(name);
    if (!node) {
        wr_error_set(p->error, problem->code, "group \"%s\": %s", route->group, problem->text);
    } else if (!is_type || wr_config_find_handler(config, suggest.best)) {
        wr_node_error(node, p->error,
                      "must be a handler of this configuration or an installed handler type, got %s%s",
                      wr_utf8_quote(shown, sizeof shown, name, strlen(name)),
                      wr_suggest_text(&suggest, nearest, sizeof nearest));
    } else {
        wr_node_error(node, p->error, "not a handler of this configuration, and %s", problem->text);
        p->error->code = problem->code;
    }
    return false;
}

/* Notes that a handler is in a route. That may name a type instead: this adds a handler of that name with
 * default options. */
static bool add_named(struct planner *p, const struct wr_config_route *route, size_t item)
{
    const char *name = route->items[item];
    struct wr_error problem = {0};
    size_t known = wr_name_index_find(&p->plan->names, name, strlen(name));
    if (known != SIZE_MAX)
        p->plan->handlers[known].routed = true;
    if (known != SIZE_MAX || strcmp(name, "inherit") == 0 || wr_name_index_has(&p->skipped, name))
        return true;
    struct wr_type *type = wr_plugins_find(p->site->plugins, &wr_plugins_handlers, name, NULL, &problem);
    if (!type && !p->site->in_child)
        return refuse_item(p, route, item, &problem);
    return add_handler(p, name, type, &(struct wr_plan_item){route, item});
}

static bool add_handlers(struct planner *p)
{
    const struct wr_config *config = p->plan->config;
    size_t count_max = config->handler_count;
    for (size_t i = 0; i < config->route_count; i++)
        count_max += config->routes[i].count;
    p->plan->handlers = calloc(count_max + 1, sizeof *p->plan->handlers);
    p->plan->skipped = wr_region_alloc(&p->plan->keep, (config->handler_count + 1) * sizeof *p->plan->skipped);
    if (!p->plan->handlers || !p->plan->skipped)
        return wr_error_no_memory(p->error, NULL);
    for (size_t i = 0; i < config->handler_count; i++)
        if (!add_described(p, &config->handlers[i]))
            return false;
    for (size_t i = 0; i < config->route_count; i++)
        for (size_t j = 0; j < config->routes[i].count; j++)
            if (!go_on(p, add_named(p, &config->routes[i], j)))
                return false;
    return true;
}

/* ---- Instances and lanes --------------------------------------------------------------------- */

static bool index_lanes(struct planner *p)
{
    size_t count = 0;
    p->lane_list = calloc(wr_lane_count(p->site->lanes) + 1, sizeof *p->lane_list);
    for (struct wr_lane *lane = p->site->lanes; lane && p->lane_list; lane = wr_lane_next(lane)) {
        if (!wr_name_index_add(&p->lanes, wr_lane_name(lane), count))
            return wr_error_no_memory(p->error, NULL);
        p->lane_list[count++] = lane;
    }
    return p->lane_list || wr_error_no_memory(p->error, NULL);
}

static bool find_or_make_lane(struct planner *p, struct wr_plan_handler *handler)
{
    size_t known = wr_name_index_find(&p->lanes, handler->name, strlen(handler->name));
    if (known != SIZE_MAX) {
        handler->lane = p->lane_list[known];
        return true;
    }
    handler->lane = wr_lane_new(handler->name, p->site->log, p->site->wakeup, p->site->deferred_log);
    handler->new_lane = true;
    return handler->lane || wr_error_no_memory(p->error, NULL);
}

static bool create(struct planner *p, struct wr_plan_handler *handler)
{
    if (handler->lane && wr_lane_config_is_same(handler->lane, handler->instance->identity)) {
        wr_instance_free(handler->instance);
        handler->instance = NULL;
        return true;
    }
    if (!wr_instance_create(handler->instance, p->error))
        return false;
    if (p->site->after_create)
        p->site->after_create(handler->type);
    return true;
}

/* [forked child] */
static void leave_out(struct planner *p, struct wr_plan_handler *handler)
{
    wr_instance_free(handler->instance);
    handler->instance = NULL;
    handler->ending = WEIR_DROPPED_FAILED;
    wr_log_write(p->site->log, WEIR_LOG_ERROR,
                 "%s: unavailable in the forked process, its values are dropped: %s", handler->name,
                 p->error->text);
}

/* [forked child] The handler's code cannot be called: see wr_unavailable_make. Without a spool or a journal, or
 * if its options cannot be read here, its values are dropped and counted. */
static void make_unavailable(struct planner *p, struct wr_plan_handler *handler,
                             const struct wr_config_handler *described)
{
    handler->ending = WEIR_DROPPED_FORK_UNSAFE;
    struct wr_instance *instance = handler->type ? wr_instance_new(handler->type, p->plan->config, described,
                                                                   p->site->log, &p->expanded, NULL, p->error)
                                                 : NULL;
    if (!instance)
        return;
    handler->settings = wr_common_options_settings(&instance->common_options);
    handler->is_pushed = wr_instance_wants_label(instance);
    bool is_kept = p->plan->config->settings.journal || instance->common_options.spool;
    bool same = handler->lane && wr_lane_config_is_same(handler->lane, instance->identity);
    if (!is_kept || same || !wr_unavailable_make(instance)) {
        wr_instance_free(instance);
        handler->ending = same ? WR_LANE_LIVES : handler->ending;
        return;
    }
    handler->instance = instance;
    handler->ending = WR_LANE_LIVES;
}

/* A handler that a route made by naming its type: the problem gets the place of that name. */
static void place_error(struct planner *p, const struct wr_plan_item *item)
{
    const struct wr_error problem = *p->error;
    const struct wr_config_route *route = item->route;
    if (!route || !problem.code || problem.code == WEIR_ERR_MEMORY)
        return;
    const char *type = route->items[item->number];
    if (route->nodes)
        wr_node_error(route->nodes[item->number], p->error, "the handler type \"%s\" with default options: %s",
                      type, problem.text);
    else
        wr_error_set(p->error, problem.code, "group \"%s\": the handler type \"%s\" with default options: %s",
                     route->group, type, problem.text);
    p->error->code = problem.code;
}

static bool make_handler(struct planner *p, struct wr_plan_handler *handler)
{
    const struct wr_config_handler *described = wr_config_find_handler(p->plan->config, handler->name);
    const struct wr_config_handler by_type = {.name = handler->name, .type = handler->name};
    if (!described)
        described = &by_type;
    if (handler->routed && !find_or_make_lane(p, handler))
        return false;
    if (!handler->type || atomic_load(&handler->type->fork_unsafe)) {
        make_unavailable(p, handler, described);
        return true;
    }
    handler->instance = wr_instance_new(handler->type, p->plan->config, described, p->site->log, &p->expanded,
                                        &p->plan->unknown, p->error);
    if (handler->instance) {
        handler->settings = wr_instance_settings(handler->instance);
        handler->is_pushed = wr_instance_wants_label(handler->instance);
    }
    if (handler->instance && create(p, handler))
        return true;
    place_error(p, &handler->item);
    if (!p->site->in_child)
        return false;
    leave_out(p, handler);
    return true;
}

static struct wr_lane *lane_of(void *ctx, const char *name, struct wr_lane_settings *settings)
{
    const struct wr_plan_handler *handler = wr_plan_find(ctx, name);
    if (!handler)
        return NULL; /* skipped */
    *settings = handler->settings;
    return handler->lane;
}

static bool make_labels(struct planner *p)
{
    const struct wr_settings *settings = &p->plan->config->settings;
    struct wr_error problem = {0};
    if (!settings->labels.count)
        return true;
    p->plan->labels = wr_labels_new(&settings->labels, p->site->labels_number, &problem);
    if (p->plan->labels)
        return true;
    if (problem.code == WEIR_ERR_NAME && p->plan->config->labels)
        wr_node_error(p->plan->config->labels, p->error, "%s", problem.text);
    else
        wr_error_set(p->error, problem.code, "settings.labels: %s", problem.text);
    return false;
}

/* Expanded here, not when the configuration is read: a forked child has another PID. */
static bool expand_instance(struct planner *p, struct wr_buffer *value)
{
    const struct wr_config *config = p->plan->config;
    const char *text = config->instance ? config->instance->text : WR_CONFIG_INSTANCE;
    struct wr_error problem = {0};
    if (wr_expand(wr_config_environment(config), text, value, &p->expanded, &problem) && wr_buffer_text(value))
        return true;
    if (!problem.code)
        return wr_error_no_memory(p->error, NULL);
    return wr_error_refuse(p->error, problem.code, "settings.instance: %s", problem.text);
}

static bool add_instance(struct planner *p, const char *value)
{
    const weir_map *labels = &p->plan->config->settings.labels;
    weir_map all = {labels->count + 1, NULL};
    weir_label *items = calloc(all.count, sizeof *items);
    if (!items)
        return wr_error_no_memory(p->error, NULL);
    if (labels->count)
        memcpy(items, labels->items, labels->count * sizeof *items);
    items[labels->count] = (weir_label){"instance", value};
    all.items = items;
    p->plan->pushed_labels = wr_labels_new(&all, p->site->labels_number + 1, p->error);
    free(items);
    return p->plan->pushed_labels;
}

static bool make_pushed_labels(struct planner *p)
{
    struct wr_buffer value = {0};
    const weir_map *labels = &p->plan->config->settings.labels;
    if (wr_labels_find(labels->items, labels->count, "instance"))
        return true;
    bool made = expand_instance(p, &value) && (!value.length || add_instance(p, value.data));
    wr_buffer_fini(&value);
    return made;
}

static bool make_summer(struct planner *p, const struct wr_plan_handler *handler)
{
    if (!handler->lane || !handler->settings.aggregate_ns || wr_lane_summer(handler->lane))
        return true;
    struct wr_summer *summer = wr_summer_new(p->site->registry);
    if (!summer)
        return wr_error_no_memory(p->error, NULL);
    if (wr_lane_set_summer(handler->lane, summer) != summer)
        wr_summer_free(summer);
    return true;
}

static bool make_all(struct planner *p)
{
    const struct wr_problems *problems = p->plan->config->problems;
    if (!add_handlers(p) || !(wr_problems_any(problems) || (make_labels(p) && make_pushed_labels(p))) ||
        !index_lanes(p))
        return false;
    for (size_t i = 0; i < p->plan->count; i++)
        if (!go_on(p, make_handler(p, &p->plan->handlers[i])) || !make_summer(p, &p->plan->handlers[i]))
            return false;
    if (wr_problems_any(problems))
        return false;
    p->plan->router =
        wr_router_new(p->plan->config, p->site->pool, p->site->has_journal, lane_of, p->plan, p->error);
    return p->plan->router;
}

static bool make(struct wr_plan *plan, const struct wr_plan_site *site, struct wr_error *error)
{
    struct planner planner = {.plan = plan, .site = site, .error = error, .expanded = plan->config->expanded};
    bool made = make_all(&planner);
    wr_name_index_fini(&planner.skipped);
    wr_name_index_fini(&planner.lanes);
    free(planner.lane_list);
    return made;
}

struct wr_plan *wr_plan_new(struct wr_config *config, const struct wr_plan_site *site, struct wr_error *error)
{
    struct wr_plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        wr_error_no_memory(error, NULL);
        return NULL;
    }
    wr_config_hold(config);
    plan->config = config;
    plan->generation = site->generation;
    if (make(plan, site, error))
        return plan;
    wr_plan_free(plan);
    return NULL;
}

static void free_handler(struct wr_plan_handler *handler)
{
    wr_instance_free(handler->instance);
    if (!handler->new_lane || !handler->lane) /* NULL: out of memory for it */
        return;
    wr_summer_free(wr_lane_summer(handler->lane));
    wr_lane_free_unused(handler->lane);
}

void wr_plan_free(struct wr_plan *plan)
{
    if (!plan)
        return;
    wr_router_free(plan->router, 0);
    for (size_t i = 0; i < plan->count; i++)
        free_handler(&plan->handlers[i]);
    free(plan->handlers);
    wr_region_fini(&plan->keep);
    wr_name_index_fini(&plan->names);
    wr_unknown_keys_fini(&plan->unknown);
    wr_labels_drop(plan->labels);
    wr_labels_drop(plan->pushed_labels);
    wr_config_drop(plan->config);
    free(plan);
}

void wr_plan_log_skipped(const struct wr_plan *plan, struct wr_log *log, bool is_new)
{
    for (size_t i = 0; i < plan->skipped_count; i++) {
        const struct wr_plan_skipped *skipped = &plan->skipped[i];
        bool logs = skipped->call ? !atomic_exchange(&skipped->call->logged, true) : is_new;
        if (logs)
            wr_log_write(log, WEIR_LOG_WARNING, "%s: optional, and left out: %s", skipped->name,
                         skipped->reason);
    }
}
