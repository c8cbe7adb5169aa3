/* routes: the handlers of a route, with those that it inherits. */
#ifndef WEIR_TOOLS_ROUTES_H
#define WEIR_TOOLS_ROUTES_H

#include "config/config.h"

/* An item of a route that a group has, or inherits. */
struct routes_item {
    const struct wr_config_route *route; /* that it is written in */
    const char *handler;
    const struct wr_transform *transform; /* NULL: none */
};

typedef void routes_visit_item(void *ctx, const struct routes_item *item);

/* Calls visit for each handler of the route. route NULL: none. */
void routes_visit(const struct wr_config *config, const struct wr_config_route *route, routes_visit_item *visit,
                  void *ctx);

#endif
