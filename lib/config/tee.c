#include "config/tee.h"

#include <stdlib.h>
#include <string.h>

#include "config/config_read.h"
#include "config/sections.h"
#include "text/array.h"
#include "text/buffer.h"
#include "text/error.h"
#include "text/name_index.h"

enum { NAME_LONGEST = 255 - (sizeof WR_TEE_PREFIX - 1) };

/* ---- Reading --------------------------------------------------------------------------------- */

/* Settings, sources and the meanings of names belong to the program. */
static bool check_tee(const struct wr_config *tee, struct wr_error *error)
{
    for (size_t i = 0; i < tee->document_count; i++)
        for (const struct wr_node *node = tee->documents[i]->root->first; node; node = node->next)
            switch (wr_sections_find(node->key)) {
            case WR_SECTION_SETTINGS:
            case WR_SECTION_METRICS:
            case WR_SECTION_SOURCES:
                return wr_node_key_error(
                    node, error,
                    "not allowed in a tee, which only adds handlers to the program's; allowed: "
                    "$schema, include, handlers, groups");
            default: break;
            }
    for (size_t i = 0; i < tee->handler_count; i++)
        if (strlen(tee->handlers[i].name) > NAME_LONGEST)
            return wr_node_key_error(tee->handlers[i].node, error,
                                     "the names of a tee's handlers have at most %d bytes", NAME_LONGEST);
    if (tee->route_count)
        return true;
    return wr_error_refuse(error, WEIR_ERR_CONFIG,
                           "WEIR_TEE: \"groups\" is missing or empty: nothing would be routed to the tee");
}

struct wr_config *wr_tee_read(struct wr_error *error)
{
    struct wr_config *tee = wr_config_read_variable("WEIR_TEE", error);
    if (!tee || check_tee(tee, error))
        return tee;
    wr_config_drop(tee);
    return NULL;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

struct adder {
    struct wr_config *result, *config, *tee;
    struct wr_error *error;
};

/* The names of handlers of one group, and what is done with its values on their way to each. */
struct names {
    struct wr_name_index known;
    const char **items;
    struct wr_transform **transforms;
    uint32_t count, item_room, transform_room;
};

/* A name that is there keeps its transform. */
static bool put_name(struct names *names, const char *name, struct wr_transform *transform)
{
    if (wr_name_index_has(&names->known, name))
        return true;
    if (!WR_ARRAY_HAS_ROOM(&names->items, &names->item_room, names->count + 1) ||
        !WR_ARRAY_HAS_ROOM(&names->transforms, &names->transform_room, names->count + 1))
        return false;
    names->items[names->count] = name;
    names->transforms[names->count++] = transform;
    return wr_name_index_add(&names->known, name, 0);
}

/* The name that a handler of the tee has in the result; that of a type stays. NULL: out of memory. */
static const char *name_in_result(const struct adder *adder, const char *name)
{
    struct wr_buffer text = {0};
    if (!wr_config_find_handler(adder->tee, name))
        return name;
    wr_buffer_put_format(&text, WR_TEE_PREFIX "%s", name);
    const char *kept = wr_config_keep_text(adder->result, wr_buffer_text(&text));
    wr_buffer_fini(&text);
    return kept;
}

static bool put_item(const struct adder *adder, struct names *names, const struct wr_config *config,
                     const struct wr_config_route *route, size_t item)
{
    const char *name = route->items[item];
    if (config == adder->tee)
        name = name_in_result(adder, name);
    return name && put_name(names, name, route->transforms ? route->transforms[item] : NULL);
}

static bool is_inherit(const struct wr_config_route *route, size_t item)
{
    return strcmp(route->items[item], "inherit") == 0;
}

/* The handlers that a configuration routes a group to, inherited ones last: what a group has itself takes
 * precedence. Its depth is that of the group. */
static bool put_route(const struct adder *adder, struct names *names, const struct wr_config *config,
                      const char *group, bool above)
{
    const struct wr_config_route *route = wr_config_find_route(config, group, above);
    bool inherits = false;
    for (size_t i = 0; route && i < route->count; i++) {
        inherits |= is_inherit(route, i);
        if (!is_inherit(route, i) && !put_item(adder, names, config, route, i))
            return false;
    }
    return !inherits || put_route(adder, names, config, route->group, true);
}

/* Routes that are made here have no places in a document: an error of the program's own is found by planning
 * its configuration without the tee. */
static bool add_route(const struct adder *adder, const char *group)
{
    struct names names = {0};
    bool done = put_route(adder, &names, adder->config, group, false) &&
                put_route(adder, &names, adder->tee, group, false);
    struct wr_config_route route = {
        .group = group, .count = names.count, .items = names.items, .transforms = names.transforms};
    done = done && wr_config_add_route(adder->result, &route);
    free(names.items);
    free(names.transforms);
    wr_name_index_fini(&names.known);
    return done || wr_error_no_memory(adder->error, NULL);
}

static bool has_route(const struct wr_config *config, const char *group)
{
    const struct wr_config_route *route = wr_config_find_route(config, group, false);
    return route && strcmp(route->group, group) == 0;
}

static bool add_routes(const struct adder *adder)
{
    for (size_t i = 0; i < adder->config->route_count; i++)
        if (!add_route(adder, adder->config->routes[i].group))
            return false;
    for (size_t i = 0; i < adder->tee->route_count; i++)
        if (!has_route(adder->config, adder->tee->routes[i].group) &&
            !add_route(adder, adder->tee->routes[i].group))
            return false;
    return true;
}

/* A type that a route of the tee names, and a handler of the program that has its name. Types that both name
 * are one handler. */
static bool check_names(const struct adder *adder)
{
    const struct wr_config *tee = adder->tee;
    for (size_t i = 0; i < tee->route_count; i++)
        for (size_t j = 0; j < tee->routes[i].count; j++) {
            const char *name = tee->routes[i].items[j];
            if (!wr_config_find_handler(adder->config, name) || wr_config_find_handler(tee, name))
                continue;
            return wr_error_refuse(
                adder->error, WEIR_ERR_CONFIG,
                "the handler type \"%s\" in a route of the tee is the name of a handler of the program", name);
        }
    return true;
}

static bool add_handlers(const struct adder *adder)
{
    for (size_t i = 0; i < adder->config->handler_count; i++)
        if (!wr_config_add_handler(adder->result, &adder->config->handlers[i]))
            return wr_error_no_memory(adder->error, NULL);
    for (size_t i = 0; i < adder->tee->handler_count; i++) {
        struct wr_config_handler handler = adder->tee->handlers[i];
        handler.home = adder->tee;
        handler.name = name_in_result(adder, handler.name);
        if (handler.name && wr_config_find_handler(adder->config, handler.name))
            return wr_error_refuse(adder->error, WEIR_ERR_CONFIG,
                                   "a handler of the program's configuration is named \"%s\" too",
                                   handler.name);
        if (!handler.name || !wr_config_add_handler(adder->result, &handler))
            return wr_error_no_memory(adder->error, NULL);
    }
    return true;
}

struct wr_config *wr_tee_add(struct wr_config *config, struct wr_config *tee, struct wr_error *error)
{
    struct adder adder = {wr_config_make_edited(config), config, tee, error};
    if (!adder.result) {
        wr_error_no_memory(adder.error, NULL);
        return NULL;
    }
    wr_config_hold(config);
    adder.result->without_tee = config;
    wr_config_hold(tee);
    adder.result->tee = tee;
    if (check_names(&adder) && add_handlers(&adder) && add_routes(&adder))
        return adder.result;
    wr_config_drop(adder.result);
    return NULL;
}

struct wr_config *wr_tee_without(struct wr_config *config)
{
    return config->without_tee ? config->without_tee : config;
}
