#include "engine/plan.h"

#include <stdlib.h>
#include <string.h>

#include "text/buffer.h"
#include "text/error.h"
#include "text/suggest.h"
#include "text/utf8.h"

enum { SHOWN_ROOM = 200 };

struct planner {
    struct wr_plan *plan;
    const struct wr_plan_site *site;
    struct wr_error *error;
};

static bool fail_memory(struct wr_error *error)
{
    return wr_error_no_memory(error, NULL);
}

const struct wr_plan_handler *wr_plan_find(const struct wr_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->count; i++)
        if (strcmp(plan->handlers[i].name, name) == 0)
            return &plan->handlers[i];
    return NULL;
}

/* ---- Types ----------------------------------------------------------------------------------- */

static bool is_routed(const struct wr_config *config, const char *name)
{
    for (size_t i = 0; i < config->route_count; i++)
        for (size_t j = 0; j < config->routes[i].count; j++)
            if (strcmp(config->routes[i].items[j], name) == 0)
                return true;
    return false;
}

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

static void add_handler(struct planner *p, const char *name, struct wr_type *type, bool routed)
{
    p->plan->handlers[p->plan->count++] = (struct wr_plan_handler){
        .name = name,
        .type = type,
        .routed = routed,
        .ending = WR_LANE_LIVES,
    };
}

/* In a forked child the type may be missing: such a handler has no type. */
static bool add_described(struct planner *p, const struct wr_config_handler *handler)
{
    struct wr_error problem = {0};
    struct wr_type *type = wr_plugins_find(p->site->plugins, handler->type, handler->plugin, &problem);
    if (!type && !p->site->in_child)
        return fail_type(handler, &problem, p->error);
    add_handler(p, handler->name, type, is_routed(p->plan->config, handler->name));
    return true;
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
    const struct wr_node *node = route->node;
    for (const struct wr_node *at = node && node->type == WR_NODE_ARRAY ? node->first : NULL; at; at = at->next)
        if (at->index == item)
            node = at;
    if (!node) {
        wr_error_set(p->error, problem->code, "%s", problem->text);
    } else if (suggest.best || !wr_plugins_is_type_name(name)) {
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

/* A route may name a type instead of a handler: this adds a handler of that name with default options. */
static bool add_named(struct planner *p, const struct wr_config_route *route, size_t item)
{
    const char *name = route->items[item];
    struct wr_error problem = {0};
    if (strcmp(name, "inherit") == 0 || wr_plan_find(p->plan, name))
        return true;
    struct wr_type *type = wr_plugins_find(p->site->plugins, name, NULL, &problem);
    if (!type && !p->site->in_child)
        return refuse_item(p, route, item, &problem);
    add_handler(p, name, type, true);
    return true;
}

static bool add_handlers(struct planner *p)
{
    const struct wr_config *config = p->plan->config;
    size_t count_max = config->handler_count;
    for (size_t i = 0; i < config->route_count; i++)
        count_max += config->routes[i].count;
    p->plan->handlers = calloc(count_max + 1, sizeof *p->plan->handlers);
    if (!p->plan->handlers)
        return fail_memory(p->error);
    for (size_t i = 0; i < config->handler_count; i++)
        if (!add_described(p, &config->handlers[i]))
            return false;
    for (size_t i = 0; i < config->route_count; i++)
        for (size_t j = 0; j < config->routes[i].count; j++)
            if (!add_named(p, &config->routes[i], j))
                return false;
    return true;
}

/* ---- Instances and lanes --------------------------------------------------------------------- */

static struct wr_lane *find_lane(struct wr_lane *lane, const char *name)
{
    while (lane && strcmp(wr_lane_name(lane), name) != 0)
        lane = wr_lane_next(lane);
    return lane;
}

static bool find_or_make_lane(struct planner *p, struct wr_plan_handler *handler)
{
    handler->lane = find_lane(p->site->lanes, handler->name);
    if (handler->lane)
        return true;
    handler->lane = wr_lane_new(handler->name, p->site->log, p->site->wakeup, p->site->words);
    handler->new_lane = true;
    return handler->lane || fail_memory(p->error);
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
        p->site->after_create(p->site->ctx, handler->type);
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

static bool make_handler(struct planner *p, struct wr_plan_handler *handler)
{
    const struct wr_config_handler *described = wr_config_find_handler(p->plan->config, handler->name);
    const struct wr_config_handler by_type = {.name = handler->name, .type = handler->name};
    if (!described)
        described = &by_type;
    if (handler->routed && !find_or_make_lane(p, handler))
        return false;
    if (!handler->type || atomic_load(&handler->type->fork_unsafe)) {
        handler->ending = WEIR_DROPPED_FORK_UNSAFE;
        return true;
    }
    handler->instance = wr_instance_new(handler->type, p->plan->config, described, p->site->log, p->error);
    if (handler->instance)
        handler->settings = wr_common_options_settings(&handler->instance->common_options);
    if (handler->instance && create(p, handler))
        return true;
    if (!p->site->in_child)
        return false;
    leave_out(p, handler);
    return true;
}

static struct wr_lane *lane_of(void *ctx, const char *name, struct wr_lane_settings *settings)
{
    const struct wr_plan_handler *handler = wr_plan_find(ctx, name);
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
    if (!p->plan->labels)
        wr_error_set(p->error, problem.code == WEIR_ERR_NAME ? WEIR_ERR_CONFIG : problem.code,
                     "settings.labels: %s", problem.text);
    return p->plan->labels;
}

static bool make_all(struct planner *p)
{
    if (!add_handlers(p) || !make_labels(p))
        return false;
    for (size_t i = 0; i < p->plan->count; i++)
        if (!make_handler(p, &p->plan->handlers[i]))
            return false;
    p->plan->router = wr_router_new(p->plan->config, p->site->pool, lane_of, p->plan);
    return p->plan->router || fail_memory(p->error);
}

struct wr_plan *wr_plan_new(struct wr_config *config, const struct wr_plan_site *site, struct wr_error *error)
{
    struct wr_plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        fail_memory(error);
        return NULL;
    }
    wr_config_hold(config);
    plan->config = config;
    plan->generation = site->generation;
    struct planner planner = {plan, site, error};
    if (make_all(&planner))
        return plan;
    wr_plan_free(plan);
    return NULL;
}

static void free_handler(struct wr_plan_handler *handler)
{
    wr_instance_free(handler->instance);
    if (handler->new_lane)
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
    wr_labels_drop(plan->labels);
    wr_config_drop(plan->config);
    free(plan);
}
