#include "config/config.h"

#include <stdlib.h>
#include <string.h>

#include "registry/name.h"
#include "text/buffer.h"
#include "text/common.h"
#include "text/error.h"

/* ---- Settings -------------------------------------------------------------------------------- */

#define ROW(name, type, default_text, allowed, help, field)                                                    \
    WEIR_OPTION_ROW(name, type, 0, default_text, allowed, help, struct wr_settings, field)

const weir_option wr_settings_rows[] = {
    ROW("shutdown_timeout", DURATION, "5s", "0s..1d", "how long the end of the program may wait for deliveries",
        shutdown_timeout_ns),
    ROW("labels", MAP, NULL, NULL, "labels that every value gets", labels),
    ROW("instance", STRING, WR_CONFIG_INSTANCE, NULL,
        "the label instance of summaries in formats that are pushed; empty: no such label", instance),
    ROW("reload", DURATION, "0s", "0s..1d",
        "how often to look whether the configuration's files have changed; 0s: never", reload_ns),
    ROW("stats_interval", DURATION, "10s", "1ms..1d",
        "how often weir adds its own metrics to the group \"weir\"", stats_interval_ns),
    ROW("clock", ENUM, "auto", "auto|system",
        "auto: the processor's counter, where it can be relied on; system: always CLOCK_REALTIME", clock),
    ROW("journal", PATH, NULL, NULL,
        "a folder in which what is in memory outlives the process, however that ends", journal),
    ROW("max_series", INT, "100000", "1..30000000", "the most groups, label sets and series together",
        max_series),
    ROW("max_series_per_name", INT, "2000", "0..30000000",
        "the most label sets of one name in a group; 0: no limit", max_series_per_name),
    ROW("expiry", DURATION, "0s", "0s..365d",
        "after how long without a value gauges, plain values and label sets end; 0s: never", expiry_ns),
    ROW("unknown_keys", ENUM, "error", "error|warn",
        "what an unknown key of the configuration is; warn: it is logged and ignored", unknown_keys),
    ROW("status", STRING, "off", "off|auto|/FOLDER",
        "where the process can be looked into by the command weir status; auto: a folder of the user's own",
        status),
    {0},
};

const struct wr_environment *wr_config_environment(const struct wr_config *config)
{
    return config->environment ? config->environment : &wr_environment_empty;
}

struct wr_options_fill wr_config_fill(struct wr_config *config, struct wr_options_table table, void *target)
{
    return (struct wr_options_fill){
        .table = table,
        .target = target,
        .environment = wr_config_environment(config),
        .keep = &config->keep,
        .expanded = &config->expanded,
        .ignores_unknown = config->ignores_unknown,
        .unknown = &config->unknown,
        .problems = config->problems,
    };
}

struct wr_options_fill wr_config_fill_settings(struct wr_config *config)
{
    const struct wr_options_table table = WR_OPTIONS_TABLE(wr_settings_rows, struct wr_settings);
    return wr_config_fill(config, table, &config->settings);
}

bool wr_config_read_string(struct wr_config *config, const struct wr_node *node, const char **text,
                           struct wr_error *error)
{
    static const weir_option row = {"", WEIR_OPTION_STRING, 0, NULL, NULL, "", 0};
    const struct wr_options_fill fill = wr_config_fill(config, (struct wr_options_table){0}, text);
    return wr_options_set_node(&fill, &row, node, error);
}

static bool set_default_settings(struct wr_config *config, struct wr_error *error)
{
    const struct wr_options_fill fill = wr_config_fill_settings(config);
    return wr_options_set_defaults(&fill, error);
}

/* ---- Building -------------------------------------------------------------------------------- */

const char *wr_config_keep_text(struct wr_config *config, const char *text)
{
    return text ? wr_region_text(&config->keep, text, strlen(text)) : NULL;
}

#define ADD_ELEMENT(config, array, count) add_element((config), &(array), &(count), sizeof *(array))

/* Appends a zeroed element to the array at an address. Returns it; NULL: out of memory. */
static void *add_element(struct wr_config *config, void *array, size_t *count, size_t size)
{
    /* doubled when full: the former arrays stay in `keep`, together no larger than the present one */
    bool is_full = (*count & (*count - 1)) == 0;
    char *items; /* copied, since a pointer to another type must not be accessed as char * */
    memcpy(&items, array, sizeof items);
    if (is_full) {
        char *grown = wr_region_alloc(&config->keep, (*count ? *count * 2 : 1) * size);
        if (!grown)
            return NULL;
        if (*count)
            memcpy(grown, items, *count * size);
        items = grown;
        memcpy(array, &items, sizeof items);
    }
    return items + (*count)++ * size;
}

const char *wr_config_keep_path(struct wr_config *config, const char *path)
{
    const char *folder = config->environment->folder;
    if (path[0] == '/' || !folder)
        return wr_config_keep_text(config, path);
    struct wr_buffer absolute = {0};
    wr_buffer_put_format(&absolute, "%s/%s", folder, path);
    const char *kept = wr_config_keep_text(config, wr_buffer_text(&absolute));
    wr_buffer_fini(&absolute);
    return kept;
}

bool wr_config_add_document(struct wr_config *config, struct wr_document *document)
{
    struct wr_document **added = ADD_ELEMENT(config, config->documents, config->document_count);
    if (!added)
        return false;
    *added = document;
    wr_document_hold(document);
    return true;
}

bool wr_config_add_watched(struct wr_config *config, const char *path, struct wr_file_mark mark)
{
    const char *kept = wr_config_keep_path(config, path);
    struct wr_watched *added = kept ? ADD_ELEMENT(config, config->watched, config->watched_count) : NULL;
    if (added)
        *added = (struct wr_watched){kept, mark};
    return added;
}

/* Known by SECTION, GROUP and NAME, separated by control characters; the number is the node's address. */
bool wr_config_define(struct wr_config *config, const struct wr_node *node, const char *section,
                      const char *group, struct wr_error *error)
{
    struct wr_name_index *known = &config->definitions;
    struct wr_buffer key = {0};
    char place[WR_NODE_PLACE_ROOM];
    if (config->document_count == 1) /* it has no key twice */
        return true;
    wr_buffer_put_format(&key, "%s\n%s\n%s", section, group, node->key);
    size_t first = key.failed ? SIZE_MAX : wr_name_index_find(known, key.data, key.length);
    const char *kept = wr_config_keep_text(config, wr_buffer_text(&key));
    wr_buffer_fini(&key);
    if (first != SIZE_MAX)
        return wr_node_key_error(
            node, error, "defined twice; also at %s",
            wr_node_show_place((const struct wr_node *)(uintptr_t)first, place, sizeof place));
    return (kept && wr_name_index_add(known, kept, (uintptr_t)node)) || wr_error_no_memory(error, NULL);
}

struct wr_metric_rule *wr_config_add_metric(struct wr_config *config)
{
    return ADD_ELEMENT(config, config->metrics.items, config->metrics.count);
}

static bool copy_handler(struct wr_config *config, struct wr_config_handler *copy,
                         const struct wr_config_handler *handler)
{
    *copy = *handler;
    if (copy->document)
        wr_document_hold(copy->document);
    if (copy->environment)
        wr_environment_hold(copy->environment);
    copy->name = wr_config_keep_text(config, handler->name);
    copy->type = wr_config_keep_text(config, handler->type);
    copy->plugin = wr_config_keep_text(config, handler->plugin);
    return copy->name && !copy->type == !handler->type && !copy->plugin == !handler->plugin;
}

static void drop_handlers(struct wr_config_handler *handlers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        wr_document_drop(handlers[i].document);
        wr_environment_drop(handlers[i].environment);
    }
}

bool wr_config_add_handler(struct wr_config *config, const struct wr_config_handler *handler)
{
    struct wr_config_handler *copy = ADD_ELEMENT(config, config->handlers, config->handler_count);
    return copy && copy_handler(config, copy, handler) &&
           wr_name_index_add(&config->handler_names, copy->name, config->handler_count - 1);
}

bool wr_config_add_source(struct wr_config *config, const struct wr_config_handler *source)
{
    struct wr_config_handler *copy = ADD_ELEMENT(config, config->sources, config->source_count);
    return copy && copy_handler(config, copy, source);
}

static bool copy_items(struct wr_config *config, struct wr_config_route *copy,
                       const struct wr_config_route *route)
{
    bool inherits = false;
    copy->items = wr_region_alloc(&config->keep, (route->count + 1) * sizeof *copy->items);
    copy->nodes =
        route->nodes ? wr_region_alloc(&config->keep, (route->count + 1) * sizeof *copy->nodes) : NULL;
    copy->transforms = route->transforms
                           ? wr_region_alloc(&config->keep, (route->count + 1) * sizeof *copy->transforms)
                           : NULL;
    if (!copy->items || !copy->nodes != !route->nodes || !copy->transforms != !route->transforms)
        return false;
    for (size_t i = 0; i < route->count; i++) {
        bool is_inherit = strcmp(route->items[i], "inherit") == 0;
        if (is_inherit && inherits)
            continue;
        inherits |= is_inherit;
        if (route->nodes)
            copy->nodes[copy->count] = route->nodes[i];
        if (route->transforms)
            copy->transforms[copy->count] = route->transforms[i];
        copy->items[copy->count] = wr_config_keep_text(config, route->items[i]);
        if (!copy->items[copy->count++])
            return false;
    }
    return true;
}

bool wr_config_add_route(struct wr_config *config, const struct wr_config_route *route)
{
    struct wr_config_route *copy = ADD_ELEMENT(config, config->routes, config->route_count);
    if (!copy)
        return false;
    *copy = (struct wr_config_route){.group = wr_config_keep_text(config, route->group), .node = route->node};
    return copy->group && copy_items(config, copy, route) &&
           wr_name_index_add(&config->route_groups, copy->group, config->route_count - 1);
}

bool wr_config_add_call(struct wr_config *config, const struct wr_config_call *call)
{
    struct wr_config_call *copy = ADD_ELEMENT(config, config->calls, config->call_count);
    if (!copy)
        return false;
    *copy = (struct wr_config_call){
        wr_config_keep_text(config, call->group), wr_config_keep_text(config, call->type),
        wr_config_keep_text(config, call->options), wr_config_keep_text(config, call->handler)};
    return copy->group && !copy->type == !call->type && !copy->options == !call->options &&
           !copy->handler == !call->handler;
}

struct wr_config *wr_config_make(struct wr_error *error)
{
    struct wr_config *config = calloc(1, sizeof *config);
    if (!config) {
        wr_error_no_memory(error, NULL);
        return NULL;
    }
    atomic_store_explicit(&config->references, 1, memory_order_relaxed);
    if (set_default_settings(config, error)) {
        config->metrics.max_series_per_name = (uint32_t)config->settings.max_series_per_name;
        return config;
    }
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
    config->documents = base->documents;
    config->document_count = base->document_count;
    config->watched = base->watched;
    config->watched_count = base->watched_count;
    config->settings = base->settings;
    config->ignores_unknown = base->ignores_unknown;
    config->labels = base->labels;
    config->instance = base->instance;
    config->defaults = base->defaults;
    config->metrics = base->metrics;
    config->sources = base->sources;
    config->source_count = base->source_count;
    return config;
}

struct wr_config *wr_config_new(void)
{
    struct wr_error error;
    return wr_config_make(&error);
}

void wr_config_hold(struct wr_config *config)
{
    atomic_fetch_add_explicit(&config->references, 1, memory_order_relaxed);
}

void wr_config_drop(struct wr_config *config)
{
    if (!config || atomic_fetch_sub_explicit(&config->references, 1, memory_order_acq_rel) != 1)
        return;
    drop_handlers(config->handlers, config->handler_count);
    wr_config_drop(config->without_tee);
    wr_config_drop(config->tee);
    if (config->origin) {
        wr_config_drop(config->origin);
    } else {
        drop_handlers(config->sources, config->source_count);
        for (size_t i = 0; i < config->document_count; i++)
            wr_document_drop(config->documents[i]);
        wr_document_drop(config->document);
        wr_environment_drop(config->environment);
        wr_metric_rules_fini(&config->metrics);
    }
    wr_unknown_keys_fini(&config->unknown);
    wr_name_index_fini(&config->handler_names);
    wr_name_index_fini(&config->route_groups);
    wr_region_fini(&config->keep);
    free(config);
}

struct wr_config *wr_config_origin(struct wr_config *config)
{
    return config->origin ? config->origin : config;
}

/* ---- Queries --------------------------------------------------------------------------------- */

const struct wr_config_handler *wr_config_find_handler(const struct wr_config *config, const char *name)
{
    size_t number = wr_name_index_find(&config->handler_names, name, strlen(name));
    return number == SIZE_MAX ? NULL : &config->handlers[number];
}

static const struct wr_config_route *find_exact(const struct wr_config *config, const char *group,
                                                size_t length)
{
    size_t number = wr_name_index_find(&config->route_groups, group, length);
    return number == SIZE_MAX ? NULL : &config->routes[number];
}

bool wr_config_is_own_group(const char *group)
{
    return wr_name_is_own_group(group);
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
    return wr_name_is_own_group(group) ? NULL : find_exact(config, "*", 1);
}
