#include "config/config.h"

#include <stdlib.h>
#include <string.h>

#include "text/common.h"
#include "text/error.h"
#include "config/options.h"

/* ---- Settings -------------------------------------------------------------------------------- */

const weir_option wr_settings_rows[] = {
    {"shutdown_timeout", WEIR_OPTION_DURATION, 0, "5s", "0s..1d",
     "how long the end of the program may wait for deliveries",
     offsetof(struct wr_settings, shutdown_timeout_ns)},
    {"labels", WEIR_OPTION_MAP, 0, NULL, NULL, "labels that every value gets",
     offsetof(struct wr_settings, labels)},
    {"reload", WEIR_OPTION_DURATION, 0, "0s", "0s..1d",
     "how often to look whether the file has changed; 0s: never", offsetof(struct wr_settings, reload_ns)},
    {"stats_interval", WEIR_OPTION_DURATION, 0, "10s", "1ms..1d",
     "how often weir adds its own metrics to the group \"weir\"",
     offsetof(struct wr_settings, stats_interval_ns)},
    {"clock", WEIR_OPTION_ENUM, 0, "auto", "auto|system",
     "auto: the processor's counter, where it can be relied on; system: always CLOCK_REALTIME",
     offsetof(struct wr_settings, clock)},
    {"journal", WEIR_OPTION_PATH, 0, NULL, NULL,
     "a folder in which what is in memory outlives the process, however that ends",
     offsetof(struct wr_settings, journal)},
    {"max_series", WEIR_OPTION_INT, 0, "100000", "1..30000000",
     "the most groups, label sets and series together", offsetof(struct wr_settings, max_series)},
    {"status", WEIR_OPTION_STRING, 0, "off", "off|auto|/FOLDER",
     "where the process can be looked into by the command weir status; auto: a folder of the user's own",
     offsetof(struct wr_settings, status)},
    {0},
};

static bool set_default_settings(struct wr_config *config, const struct wr_environment *environment,
                                 struct wr_error *error)
{
    struct wr_options_fill fill = {WR_OPTIONS_TABLE(wr_settings_rows, struct wr_settings), &config->settings,
                                   environment, &config->keep, NULL};
    return wr_options_set_defaults(&fill, error);
}

/* ---- Building -------------------------------------------------------------------------------- */

static bool fail_memory(struct wr_error *error)
{
    return wr_error_no_memory(error, NULL);
}

const char *wr_config_keep_text(struct wr_config *config, const char *text)
{
    return text ? wr_region_text(&config->keep, text, strlen(text)) : NULL;
}

/* Returns the array with a zeroed element appended. NULL: out of memory. */
static void *add_element(struct wr_config *config, void *array, size_t *count, size_t size)
{
    /* doubled when full: the former arrays stay in `keep`, together no larger than the present one */
    bool is_full = (*count & (*count - 1)) == 0;
    void *grown = array;
    if (is_full) {
        grown = wr_region_alloc(&config->keep, (*count ? *count * 2 : 1) * size);
        if (grown && *count)
            memcpy(grown, array, *count * size);
    }
    if (grown)
        ++*count;
    return grown;
}

bool wr_config_add_handler(struct wr_config *config, const struct wr_config_handler *handler)
{
    void *grown = add_element(config, config->handlers, &config->handler_count, sizeof *config->handlers);
    if (!grown)
        return false;
    config->handlers = grown;
    struct wr_config_handler *copy = &config->handlers[config->handler_count - 1];
    *copy = *handler;
    if (copy->document)
        wr_document_hold(copy->document);
    if (copy->environment)
        wr_environment_hold(copy->environment);
    copy->name = wr_config_keep_text(config, handler->name);
    copy->type = wr_config_keep_text(config, handler->type);
    copy->plugin = wr_config_keep_text(config, handler->plugin);
    return copy->name && copy->type && !copy->plugin == !handler->plugin;
}

bool wr_config_add_route(struct wr_config *config, const struct wr_config_route *route)
{
    void *grown = add_element(config, config->routes, &config->route_count, sizeof *config->routes);
    const char **items = wr_region_alloc(&config->keep, (route->count + 1) * sizeof *items);
    if (!grown || !items)
        return false;
    config->routes = grown;
    for (size_t i = 0; i < route->count; i++)
        if (!(items[i] = wr_config_keep_text(config, route->items[i])))
            return false;
    const char *group = wr_config_keep_text(config, route->group);
    config->routes[config->route_count - 1] = (struct wr_config_route){group, route->count, items, route->node};
    return group;
}

bool wr_config_add_call(struct wr_config *config, const struct wr_config_call *call)
{
    void *grown = add_element(config, config->calls, &config->call_count, sizeof *config->calls);
    if (!grown)
        return false;
    config->calls = grown;
    struct wr_config_call *copy = &config->calls[config->call_count - 1];
    *copy = (struct wr_config_call){
        wr_config_keep_text(config, call->group), wr_config_keep_text(config, call->type),
        wr_config_keep_text(config, call->options), wr_config_keep_text(config, call->handler)};
    return copy->group && !copy->type == !call->type && !copy->options == !call->options &&
           !copy->handler == !call->handler;
}

struct wr_config *wr_config_make(const struct wr_environment *environment, struct wr_error *error)
{
    struct wr_config *config = calloc(1, sizeof *config);
    if (!config) {
        fail_memory(error);
        return NULL;
    }
    atomic_store_explicit(&config->references, 1, memory_order_relaxed);
    if (set_default_settings(config, environment, error))
        return config;
    wr_config_drop(config);
    return NULL;
}

struct wr_config *wr_config_make_edited(struct wr_config *base)
{
    struct wr_config *config = calloc(1, sizeof *config);
    if (!config)
        return NULL;
    atomic_store_explicit(&config->references, 1, memory_order_relaxed);
    /* never a chain: what earlier edits added is copied or dropped by the next one */
    config->origin = base->origin ? base->origin : base;
    wr_config_hold(config->origin);
    config->document = base->document;
    config->environment = base->environment;
    config->path = base->path;
    config->settings = base->settings;
    config->defaults = base->defaults;
    return config;
}

struct wr_config *wr_config_new(void)
{
    static const char *no_entries[] = {NULL};
    const struct wr_environment empty = {.entries = no_entries, .folder = "/"};
    struct wr_error error;
    return wr_config_make(&empty, &error);
}

void wr_config_hold(struct wr_config *config)
{
    atomic_fetch_add_explicit(&config->references, 1, memory_order_relaxed);
}

void wr_config_drop(struct wr_config *config)
{
    if (!config || atomic_fetch_sub_explicit(&config->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < config->handler_count; i++) {
        wr_document_drop(config->handlers[i].document);
        wr_environment_drop(config->handlers[i].environment);
    }
    if (config->origin) {
        wr_config_drop(config->origin);
    } else {
        wr_document_drop(config->document);
        wr_environment_drop(config->environment);
    }
    wr_region_fini(&config->keep);
    free(config);
}

/* ---- Queries --------------------------------------------------------------------------------- */

const struct wr_config_handler *wr_config_find_handler(const struct wr_config *config, const char *name)
{
    for (size_t i = 0; i < config->handler_count; i++)
        if (strcmp(config->handlers[i].name, name) == 0)
            return &config->handlers[i];
    return NULL;
}

static const struct wr_config_route *find_exact(const struct wr_config *config, const char *group,
                                                size_t length)
{
    for (size_t i = 0; i < config->route_count; i++)
        if (strlen(config->routes[i].group) == length && memcmp(config->routes[i].group, group, length) == 0)
            return &config->routes[i];
    return NULL;
}

bool wr_config_is_own_group(const char *group)
{
    return strncmp(group, "weir", 4) == 0 && (group[4] == '\0' || group[4] == '.');
}

const struct wr_config_route *wr_config_find_route(const struct wr_config *config, const char *group,
                                                   bool above)
{
    size_t length = strlen(group);
    if (above && strcmp(group, "*") == 0)
        return NULL;
    for (;; above = false) {
        const struct wr_config_route *route = above ? NULL : find_exact(config, group, length);
        if (route)
            return route;
        while (length && group[length - 1] != '.')
            length--;
        if (!length)
            break;
        length--;
    }
    return wr_config_is_own_group(group) ? NULL : find_exact(config, "*", 1);
}
