#include "config/config_edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/buffer.h"
#include "text/common.h"
#include "config/document.h"
#include "text/error.h"
#include "text/name_index.h"
#include "registry/name.h"

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The names in all routes but one group's. Returns false if out of memory. */
static bool collect_used(struct wr_name_index *used, const struct wr_config *config, const char *except_group)
{
    for (size_t i = 0; i < config->route_count; i++) {
        const struct wr_config_route *route = &config->routes[i];
        if (strcmp(route->group, except_group) == 0)
            continue;
        for (size_t j = 0; j < route->count; j++)
            if (!wr_name_index_add(used, route->items[j], 0))
                return false;
    }
    return true;
}

/* Copies everything but a group's route, the call that made it, and the handlers of calls that no other route
 * uses. */
static bool copy_without(struct wr_config *copy, const struct wr_config *config, const char *group)
{
    struct wr_name_index used = {0};
    bool done = collect_used(&used, config, group);
    for (size_t i = 0; done && i < config->handler_count; i++) {
        const struct wr_config_handler *handler = &config->handlers[i];
        if (!handler->document || wr_name_index_has(&used, handler->name))
            done = wr_config_add_handler(copy, handler);
    }
    wr_name_index_fini(&used);
    for (size_t i = 0; done && i < config->route_count; i++)
        if (strcmp(config->routes[i].group, group) != 0)
            done = wr_config_add_route(copy, &config->routes[i]);
    for (size_t i = 0; done && i < config->call_count; i++)
        if (strcmp(config->calls[i].group, group) != 0)
            done = wr_config_add_call(copy, &config->calls[i]);
    return done;
}

static bool is_routed(const struct wr_config *config, const char *handler)
{
    for (size_t i = 0; i < config->route_count; i++)
        for (size_t j = 0; j < config->routes[i].count; j++)
            if (strcmp(config->routes[i].items[j], handler) == 0)
                return true;
    return false;
}

/* Whether a call may use a handler name: it is free, or its handler has the same type and options. */
static bool may_use(const struct wr_config *config, const struct wr_config_call *call, const char *options,
                    const char *name, bool *exists)
{
    const struct wr_config_handler *known = wr_config_find_handler(config, name);
    *exists =
        known && known->document && is_same(known->type, call->type) && is_same(known->document->text, options);
    return *exists || (!known && !is_routed(config, name));
}

/* The handler's name: its former one, else the type's, else TYPE:GROUP. Queues belong to names: if two handlers
 * swapped names, queued values would be delivered to the wrong destination. */
static const char *choose_name(struct wr_config *config, const struct wr_config_call *call, const char *options,
                               bool *exists, struct wr_error *error)
{
    struct wr_buffer text = {0};
    wr_buffer_put_format(&text, "%s:%s", call->type, call->group);
    const char *own = wr_config_keep_text(config, wr_buffer_text(&text));
    wr_buffer_fini(&text);
    if (!own) {
        wr_error_no_memory(error, NULL);
        return NULL;
    }
    const char *names[] = {call->handler ? call->handler : call->type, call->type, own};
    for (size_t i = 0; i < WR_COUNT_OF(names); i++)
        if (may_use(config, call, options, names[i], exists))
            return names[i];
    wr_error_set(error, WEIR_ERR_CONFIG, "handlers \"%s\" and \"%s\" both exist with other options", call->type,
                 own);
    return NULL;
}

/* Without options a route can name the type, unless that is the name of another handler. */
static bool needs_handler(const struct wr_config *config, const struct wr_config_call *call)
{
    return call->options || (call->handler && !is_same(call->handler, call->type)) ||
           wr_config_find_handler(config, call->type);
}

static bool add_handler(struct wr_config *config, const struct wr_config_call *call, const char **name,
                        struct wr_error *error)
{
    *name = call->type;
    if (!needs_handler(config, call))
        return true;
    const char *options = call->options ? call->options : "{}";
    struct wr_document *document = wr_document_read_text("options", options, strlen(options), error);
    struct wr_environment *environment = wr_environment_take();
    bool exists = false, done = document && wr_node_check_type(document->root, WR_NODE_OBJECT, error);
    if (done && !environment)
        done = wr_error_no_memory(error, NULL);
    *name = done ? choose_name(config, call, options, &exists, error) : NULL;
    done = done && *name;
    if (done && !exists) {
        struct wr_config_handler handler = {.name = *name,
                                            .type = call->type,
                                            .node = document->root,
                                            .environment = environment,
                                            .document = document};
        done = wr_config_add_handler(config, &handler) || wr_error_no_memory(error, NULL);
    }
    wr_document_drop(document);
    wr_environment_drop(environment);
    return done;
}

static bool apply_call(struct wr_config *config, const struct wr_config_call *call, struct wr_error *error)
{
    struct wr_config_call applied = *call;
    if (is_same(call->type, "inherit"))
        return wr_error_refuse(
            error, WEIR_ERR_CONFIG,
            "the handler type must not be \"inherit\": in a route, that is the parent's route");
    if (call->type && !add_handler(config, call, &applied.handler, error))
        return false;
    struct wr_config_route route = {.group = call->group, .count = 1, .items = &applied.handler};
    return (wr_config_add_call(config, &applied) && (!call->type || wr_config_add_route(config, &route))) ||
           wr_error_no_memory(error, NULL);
}

static struct wr_config *add_call(struct wr_config *config, const struct wr_config_call *call,
                                  struct wr_error *error)
{
    struct wr_config *copy = wr_config_make_edited(config);
    bool done = copy && copy_without(copy, config, call->group);
    if (!done)
        wr_error_no_memory(error, NULL);
    if (done && apply_call(copy, call, error))
        return copy;
    wr_config_drop(copy);
    return NULL;
}

struct wr_config *wr_config_edit_route(struct wr_config *config, const char *group, const char *type,
                                       const char *options, struct wr_error *error)
{
    const struct wr_config_call call = {.group = group, .type = type, .options = options};
    return add_call(config, &call, error);
}

struct wr_config *wr_config_edit_carry_over(struct wr_config *base, const struct wr_config *config,
                                            struct wr_error *error)
{
    wr_config_hold(base);
    for (size_t i = 0; base && i < config->call_count; i++) {
        struct wr_config *next = add_call(base, &config->calls[i], error);
        wr_config_drop(base);
        base = next;
    }
    return base;
}
