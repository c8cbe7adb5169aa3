#include "routes.h"

#include <string.h>

/* A route, and the routes that inherit it. */
struct chain {
    const struct wr_config_route *route;
    const struct chain *below;
};

static bool is_inherit(const char *name)
{
    return strcmp(name, "inherit") == 0;
}

/* Whether one of the routes names the handler itself, which takes precedence over what it inherits. */
static bool is_named_below(const struct chain *below, const char *handler)
{
    for (; below; below = below->below)
        for (size_t i = 0; i < below->route->count; i++)
            if (strcmp(below->route->items[i], handler) == 0)
                return true;
    return false;
}

static void visit_items(const struct wr_config *config, const struct wr_config_route *route,
                        const struct chain *below, routes_visit_item *visit, void *ctx)
{
    const struct chain here = {route, below};
    for (size_t i = 0; route && i < route->count; i++) {
        const struct routes_item item = {route, route->items[i],
                                         route->transforms ? route->transforms[i] : NULL};
        if (is_inherit(item.handler))
            visit_items(config, wr_config_find_route(config, route->group, true), &here, visit, ctx);
        else if (!is_named_below(below, item.handler))
            visit(ctx, &item);
    }
}

void routes_visit(const struct wr_config *config, const struct wr_config_route *route, routes_visit_item *visit,
                  void *ctx)
{
    visit_items(config, route, NULL, visit, ctx);
}
