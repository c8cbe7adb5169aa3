#include "warnings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/command.h"
#include "engine/plan.h"
#include "handler/plugin.h"
#include "place.h"
#include "routes.h"
#include "source/source.h"
#include "source/source_host.h"
#include "source/source_text.h"
#include "text/buffer.h"
#include "text/error.h"

/* A handler or a source. */
struct subject {
    const char *what, *name;
    const struct wr_node *node;     /* NULL: a handler that a route made */
    const struct wr_source *source; /* NULL: a handler */
    bool sums;                      /* a handler with "aggregate" */
    struct places places;
};

struct subjects {
    const struct wr_config *config;
    struct subject *items; /* the handlers, then the sources */
    size_t count;
    struct wr_problems warnings;
    bool is_full; /* further warnings were left out */
};

/* ---- Writing --------------------------------------------------------------------------------- */

/* At the subject's option; option NULL: at the subject. */
__attribute__((format(printf, 4, 5))) static void warn(struct subjects *all, const struct subject *subject,
                                                       const char *option, const char *format, ...)
{
    char words[WR_ERROR_ROOM];
    struct wr_error message;
    const struct wr_node *member = option ? wr_node_member(subject->node, option) : NULL;
    const struct wr_node *at = member ? member : subject->node;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    if (at)
        wr_node_error(at, &message, "%s", words);
    else
        wr_error_set(&message, WEIR_ERR_CONFIG, "%s \"%s\": %s", subject->what, subject->name, words);
    if (!wr_problems_go_on(&all->warnings, false, &message))
        all->is_full = true;
}

static void put(struct wr_buffer *out, const struct subjects *all)
{
    if (all->warnings.count)
        wr_buffer_put_text(out, "warnings\n");
    for (size_t i = 0; i < all->warnings.count; i++)
        wr_buffer_put_format(out, "  %s\n", all->warnings.items[i].text);
    if (all->is_full)
        wr_buffer_put_text(out, "  more\n");
}

/* ---- Places ---------------------------------------------------------------------------------- */

/* A place that both have; NULL: none. */
static const struct place *find_common(const struct subject *a, const struct subject *b)
{
    for (size_t i = 0; i < a->places.count; i++)
        for (size_t j = 0; j < b->places.count; j++)
            if (place_meets(&a->places.items[i], &b->places.items[j]))
                return &a->places.items[i];
    return NULL;
}

static bool listens_at(const struct subject *subject, const struct place *place)
{
    for (size_t i = 0; i < subject->places.count; i++)
        if (subject->places.items[i].listens && place_meets(&subject->places.items[i], place))
            return true;
    return false;
}

/* Two handlers, or two sources. Returns whether there is a warning of the second one. */
static bool compare_alike(struct subjects *all, const struct subject *first, const struct subject *second)
{
    const struct place *common = find_common(second, first);
    if (common && common->listens && listens_at(first, common))
        warn(all, second, common->option, "the %s \"%s\" listens there, too", first->what, first->name);
    else if (common && second->source)
        warn(all, second, common->option, "the source \"%s\" reads there, too", first->name);
    else if (common && places_equal(&first->places, &second->places))
        warn(all, second, common->option, "the handler \"%s\" writes there, too", first->name);
    else
        return false;
    return true;
}

/* ---- Routes ---------------------------------------------------------------------------------- */

static bool is_below(const char *group, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(group, prefix, length) == 0 && group[length] == '.';
}

/* As visit_routes, of a source all of whose values have one group. */
static bool visit_route_of_group(const struct wr_config *config, const struct wr_source *source,
                                 routes_visit_item *visit, void *ctx)
{
    struct wr_buffer group = {0};
    if (!wr_source_host_put_group(&group, source, NULL))
        command_out_of_memory();
    const struct wr_config_route *route = wr_config_find_route(config, group.data, false);
    if (route && visit)
        routes_visit(config, route, visit, ctx);
    wr_buffer_fini(&group);
    return route;
}

/* Calls visit for each route that may be that of a value of the source: if values may come with any group, the
 * source's prefix precedes it. Returns whether there is one. */
static bool visit_routes(const struct wr_config *config, const struct wr_source *source,
                         routes_visit_item *visit, void *ctx)
{
    bool found = false;
    if (source->type->is.flags & WEIR_SOURCE_TYPE_UNGROUPED && !wr_source_text_has_groups(source))
        return visit_route_of_group(config, source, visit, ctx);
    const char *prefix = source->options.group_prefix;
    const struct wr_config_route *prefix_route = prefix ? wr_config_find_route(config, prefix, false) : NULL;
    for (size_t i = 0; i < config->route_count; i++) {
        const struct wr_config_route *route = &config->routes[i];
        bool may_be = !prefix || route == prefix_route || is_below(route->group, prefix);
        if (!may_be || wr_config_is_own_group(route->group))
            continue;
        found = true;
        if (visit)
            routes_visit(config, route, visit, ctx);
    }
    return found;
}

struct search {
    const char *handler;
    bool found;
};

static void compare_handler(void *ctx, const struct routes_item *item)
{
    struct search *search = ctx;
    search->found |= strcmp(item->handler, search->handler) == 0;
}

static bool reaches(const struct wr_config *config, const struct wr_source *source, const char *handler)
{
    struct search search = {.handler = handler};
    visit_routes(config, source, compare_handler, &search);
    return search.found;
}

static void check_route(struct subjects *all, const struct subject *source)
{
    if (!visit_routes(all->config, source->source, NULL, NULL))
        warn(all, source, NULL, "no route is for a group that its values can have, so none is delivered");
}

/* Senders wait for the interval, unless their values are on disk or they ask for less. */
static void check_acknowledgements(struct subjects *all, const struct subject *source)
{
    if (strcmp(source->source->type->is.name, "forward") != 0 || all->config->settings.journal)
        return;
    const struct subject *handler = all->items;
    while (!handler->source && !(handler->sums && reaches(all->config, source->source, handler->name)))
        handler++;
    if (!handler->source)
        warn(all, source, NULL,
             "there is no settings.journal, and the handler \"%s\" has \"aggregate\": senders with \"ack\": "
             "\"stored\", the default, wait for the end of its interval",
             handler->name);
}

/* A file or address of both. What the source reads comes from the handler, unless both listen. */
static void compare_with_source(struct subjects *all, const struct subject *handler,
                                const struct subject *source)
{
    const struct place *common = find_common(handler, source);
    if (!common)
        return;
    if (common->listens)
        warn(all, source, "listen", "the handler \"%s\" listens there, too", handler->name);
    else if (reaches(all->config, source->source, handler->name))
        warn(all, handler, common->option,
             "the source \"%s\" reads there, and its values may have routes to this handler: a loop",
             source->name);
}

/* ---- All ------------------------------------------------------------------------------------- */

static void add_handler(struct subjects *all, const struct wr_plan_handler *handler)
{
    const struct wr_config_handler *described = wr_config_find_handler(all->config, handler->name);
    struct subject *subject = &all->items[all->count++];
    *subject =
        (struct subject){.what = "handler", .name = handler->name, .node = described ? described->node : NULL};
    subject->sums = handler->settings.aggregate_ns;
    if (handler->instance)
        places_init(&subject->places, handler->type->is.name, &handler->type->options,
                    handler->instance->options);
}

static void add_source(struct subjects *all, const struct wr_source *source, const struct wr_node *node)
{
    struct subject *subject = &all->items[all->count++];
    *subject =
        (struct subject){.what = "source", .name = source->host_table.name, .node = node, .source = source};
    places_init(&subject->places, source->type->is.name, &source->type->options, source->own_options);
}

/* With those before it. */
static void compare_one(struct subjects *all, const struct subject *subject)
{
    bool is_shared = false;
    for (const struct subject *other = all->items; other < subject; other++) {
        if (!other->source && subject->source)
            compare_with_source(all, other, subject);
        else if (!is_shared)
            is_shared = compare_alike(all, other, subject);
    }
    if (!subject->source)
        return;
    check_route(all, subject);
    check_acknowledgements(all, subject);
}

/* A list of sources is in the order of the configuration. */
static void add_all(struct subjects *all, const struct wr_plan *plan, const struct wr_source *sources)
{
    for (size_t i = 0; i < plan->count; i++)
        add_handler(all, &plan->handlers[i]);
    for (size_t i = 0; sources && i < all->config->source_count; i++, sources = sources->next)
        add_source(all, sources, all->config->sources[i].node);
}

void warnings_put(struct wr_buffer *out, const struct wr_plan *plan, const struct wr_source *sources)
{
    struct subjects all = {.config = plan->config};
    all.items = command_must(calloc(plan->count + plan->config->source_count + 1, sizeof *all.items));
    add_all(&all, plan, sources);
    for (size_t i = 0; i < all.count && !all.is_full; i++)
        compare_one(&all, &all.items[i]);
    put(out, &all);
    wr_problems_fini(&all.warnings);
    for (size_t i = 0; i < all.count; i++)
        places_fini(&all.items[i].places);
    free(all.items);
}
