#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "common.h"
#include "commons.h"
#include "error.h"
#include "name.h"
#include "options.h"
#include "suggest.h"
#include "utf8.h"

enum { SHOWN_ROOM = 200 };

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
    {"max_series", WEIR_OPTION_INT, 0, "100000", "1..30000000",
     "the most groups, label sets and series together", offsetof(struct wr_settings, max_series)},
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
    wr_error_set(error, WEIR_ERR_MEMORY, "no memory");
    return false;
}

static const char *keep_text(struct wr_config *config, const char *text)
{
    return text ? wr_keep_text(&config->keep, text, strlen(text)) : NULL;
}

/* Makes room for one more element in an array; the new one is zeroed. NULL without memory. */
static void *add_element(struct wr_config *config, void *array, size_t *count, size_t size)
{
    /* grown by doubling: the old arrays stay in `keep`, which costs at most as much again */
    bool is_full = (*count & (*count - 1)) == 0;
    void *grown = array;
    if (is_full) {
        grown = wr_keep_get(&config->keep, (*count ? *count * 2 : 1) * size);
        if (grown && *count)
            memcpy(grown, array, *count * size);
    }
    if (grown)
        ++*count;
    return grown;
}

static bool add_source(struct wr_config *config, struct wr_document *document,
                       struct wr_environment *environment)
{
    void *grown = add_element(config, config->sources, &config->source_count, sizeof *config->sources);
    if (!grown)
        return false;
    config->sources = grown;
    wr_document_hold(document);
    wr_environment_hold(environment);
    config->sources[config->source_count - 1] = (struct wr_config_source){document, environment};
    return true;
}

static bool add_handler(struct wr_config *config, const struct wr_config_handler *handler)
{
    void *grown = add_element(config, config->handlers, &config->handler_count, sizeof *config->handlers);
    if (!grown)
        return false;
    config->handlers = grown;
    struct wr_config_handler *copy = &config->handlers[config->handler_count - 1];
    *copy = *handler;
    copy->name = keep_text(config, handler->name);
    copy->type = keep_text(config, handler->type);
    copy->plugin = keep_text(config, handler->plugin);
    copy->options = keep_text(config, handler->options);
    return copy->name && copy->type && !copy->plugin == !handler->plugin && !copy->options == !handler->options;
}

static bool add_route(struct wr_config *config, const struct wr_config_route *route)
{
    void *grown = add_element(config, config->routes, &config->route_count, sizeof *config->routes);
    const char **items = wr_keep_get(&config->keep, (route->count + 1) * sizeof *items);
    if (!grown || !items)
        return false;
    config->routes = grown;
    for (size_t i = 0; i < route->count; i++)
        if (!(items[i] = keep_text(config, route->items[i])))
            return false;
    const char *group = keep_text(config, route->group);
    config->routes[config->route_count - 1] = (struct wr_config_route){group, route->count, items, route->node};
    return group;
}

static bool add_call(struct wr_config *config, const struct wr_config_call *call)
{
    void *grown = add_element(config, config->calls, &config->call_count, sizeof *config->calls);
    if (!grown)
        return false;
    config->calls = grown;
    struct wr_config_call *copy = &config->calls[config->call_count - 1];
    *copy = (struct wr_config_call){keep_text(config, call->group), keep_text(config, call->type),
                                    keep_text(config, call->options), keep_text(config, call->handler)};
    return copy->group && !copy->type == !call->type && !copy->options == !call->options &&
           !copy->handler == !call->handler;
}

static struct wr_config *make_config(const struct wr_environment *environment, struct wr_error *error)
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

struct wr_config *wr_config_new(void)
{
    static const char *no_entries[] = {NULL};
    const struct wr_environment empty = {.entries = no_entries, .folder = "/"};
    struct wr_error error;
    return make_config(&empty, &error);
}

void wr_config_hold(struct wr_config *config)
{
    atomic_fetch_add_explicit(&config->references, 1, memory_order_relaxed);
}

void wr_config_drop(struct wr_config *config)
{
    if (!config || atomic_fetch_sub_explicit(&config->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < config->source_count; i++) {
        wr_document_drop(config->sources[i].document);
        wr_environment_drop(config->sources[i].environment);
    }
    wr_keep_fini(&config->keep);
    free(config);
}

/* ---- Reading a document ---------------------------------------------------------------------- */

static bool must_be(const struct wr_node *node, enum wr_node_type type, struct wr_error *error)
{
    char shown[SHOWN_ROOM];
    if (node->type == type)
        return true;
    wr_node_error(node, error, "%s is not %s", wr_node_show(node, shown, sizeof shown),
                  wr_node_type_name(type));
    return false;
}

static bool read_settings(struct wr_config *config, const struct wr_node *node,
                          const struct wr_environment *environment, struct wr_error *error)
{
    struct wr_options_fill fill = {WR_OPTIONS_TABLE(wr_settings_rows, struct wr_settings), &config->settings,
                                   environment, &config->keep, NULL};
    return must_be(node, WR_NODE_OBJECT, error) && wr_options_set_members(&fill, 1, NULL, node, error);
}

static bool check_name_of(const struct wr_node *node, bool is_group, struct wr_error *error)
{
    struct wr_error problem;
    if (is_group ? wr_name_check_group(node->key, &problem)
                 : wr_name_check(node->key, "handler name", &problem))
        return true;
    wr_node_key_error(node, error, "%s", problem.text);
    return false;
}

/* handlers."*": only what all handlers have. */
static bool read_defaults(struct wr_config *config, const struct wr_node *node,
                          const struct wr_environment *environment, struct wr_error *error)
{
    static const char *const others[] = {"format", NULL};
    struct wr_commons commons = {0};
    struct wr_options_fill fill = {wr_commons_table(), &commons, environment, &config->keep, NULL};
    if (!must_be(node, WR_NODE_OBJECT, error) || !wr_options_set_members(&fill, 1, others, node, error))
        return false;
    config->defaults = node;
    return true;
}

/* A string member of a handler, expanded; *text stays NULL where there is none. */
static bool read_string(struct wr_config *config, const struct wr_node *object, const char *key,
                        const struct wr_environment *environment, const char **text, struct wr_error *error)
{
    const weir_option row = {key, WEIR_OPTION_STRING, 0, NULL, NULL, "", 0};
    const struct wr_node *node = wr_node_member(object, key);
    struct wr_options_fill fill = {{0}, text, environment, &config->keep, NULL};
    return !node || wr_options_set_node(&fill, &row, node, error);
}

static bool read_handler(struct wr_config *config, const struct wr_node *node,
                         const struct wr_environment *environment, struct wr_error *error)
{
    struct wr_config_handler handler = {.name = node->key, .node = node, .environment = environment};
    if (strcmp(node->key, "*") == 0)
        return read_defaults(config, node, environment, error);
    if (!check_name_of(node, false, error) || !must_be(node, WR_NODE_OBJECT, error))
        return false;
    if (strcmp(node->key, "inherit") == 0) {
        wr_node_key_error(node, error,
                          "\"inherit\" cannot name a handler: in a route it stands for the parent's route");
        return false;
    }
    if (!read_string(config, node, "type", environment, &handler.type, error) ||
        !read_string(config, node, "plugin", environment, &handler.plugin, error))
        return false;
    if (!handler.type) {
        wr_node_error(node, error,
                      "the option \"type\" is missing: the handler type, like \"file\" or \"console\"");
        return false;
    }
    if (handler.plugin && handler.plugin[0] != '/') {
        char shown[SHOWN_ROOM];
        wr_node_error(wr_node_member(node, "plugin"), error,
                      "%s is not an absolute path; a bare type name is looked for in the plugin folders",
                      wr_utf8_quote(shown, sizeof shown, handler.plugin, strlen(handler.plugin)));
        return false;
    }
    return add_handler(config, &handler) || fail_memory(error);
}

static bool read_handlers(struct wr_config *config, const struct wr_node *node,
                          const struct wr_environment *environment, struct wr_error *error)
{
    if (!must_be(node, WR_NODE_OBJECT, error))
        return false;
    for (const struct wr_node *member = node->first; member; member = member->next)
        if (!read_handler(config, member, environment, error))
            return false;
    return true;
}

static bool read_route_item(const struct wr_node *node, const struct wr_node *item, const char **name,
                            struct wr_error *error)
{
    char shown[SHOWN_ROOM];
    if (item->type != WR_NODE_STRING) {
        wr_node_error(
            item, error,
            "%s is not allowed in a route; allowed: the name of a handler or of an installed handler type, "
            "\"inherit\", or an array of these",
            wr_node_show(item, shown, sizeof shown));
        return false;
    }
    *name = item->text;
    if (strcmp(item->text, "inherit") == 0 && strcmp(node->key, "*") == 0) {
        wr_node_error(item, error, "\"inherit\" is not allowed here: \"*\" has no parent");
        return false;
    }
    return true;
}

static bool read_route(struct wr_config *config, const struct wr_node *node, struct wr_error *error)
{
    if (strcmp(node->key, "*") != 0 && !check_name_of(node, true, error))
        return false;
    size_t count = 0;
    const struct wr_node *first = node->type == WR_NODE_ARRAY ? node->first : node;
    for (const struct wr_node *item = first; item; item = node->type == WR_NODE_ARRAY ? item->next : NULL)
        count++;
    const char **items = calloc(count + 1, sizeof *items);
    if (!items)
        return fail_memory(error);
    const struct wr_node *item = first;
    bool done = true;
    for (size_t i = 0; done && i < count; i++, item = item->next)
        done = read_route_item(node, item, &items[i], error);
    struct wr_config_route route = {node->key, count, items, node};
    if (done && !add_route(config, &route))
        done = fail_memory(error);
    free(items);
    return done;
}

static bool read_groups(struct wr_config *config, const struct wr_node *node, struct wr_error *error)
{
    if (!must_be(node, WR_NODE_OBJECT, error))
        return false;
    for (const struct wr_node *member = node->first; member; member = member->next)
        if (!read_route(config, member, error))
            return false;
    return true;
}

static bool refuse_section(const struct wr_node *node, struct wr_error *error)
{
    static const char *const sections[] = {"$schema", "settings", "handlers", "groups"};
    struct wr_suggest suggest;
    char nearest[SHOWN_ROOM];
    wr_suggest_init(&suggest, node->key);
    for (size_t i = 0; i < WR_COUNT_OF(sections); i++)
        wr_suggest_try(&suggest, sections[i]);
    wr_node_key_error(node, error, "unknown section%s allowed: $schema, settings, handlers, groups",
                      suggest.best ? wr_suggest_words(&suggest, nearest, sizeof nearest) : ";");
    return false;
}

static bool read_section(struct wr_config *config, const struct wr_node *node,
                         const struct wr_environment *environment, struct wr_error *error)
{
    if (strcmp(node->key, "settings") == 0)
        return read_settings(config, node, environment, error);
    if (strcmp(node->key, "handlers") == 0)
        return read_handlers(config, node, environment, error);
    if (strcmp(node->key, "groups") == 0)
        return read_groups(config, node, error);
    if (strcmp(node->key, "$schema") == 0)
        return must_be(node, WR_NODE_STRING, error);
    return refuse_section(node, error);
}

static bool read_root(struct wr_config *config, const struct wr_node *root,
                      const struct wr_environment *environment, struct wr_error *error)
{
    if (!must_be(root, WR_NODE_OBJECT, error))
        return false;
    for (const struct wr_node *section = root->first; section; section = section->next)
        if (!read_section(config, section, environment, error))
            return false;
    return true;
}

/* Takes over the document. */
static struct wr_config *read_document(struct wr_document *document, struct wr_environment *given,
                                       struct wr_error *error)
{
    struct wr_environment *environment = given ? given : wr_environment_take();
    struct wr_config *config = NULL;
    if (!environment)
        fail_memory(error);
    else if (document)
        config = make_config(environment, error);
    bool done = config && (add_source(config, document, environment) || fail_memory(error)) &&
                read_root(config, document->root, environment, error);
    wr_document_drop(document);
    if (!given)
        wr_environment_drop(environment);
    if (done)
        return config;
    wr_config_drop(config);
    return NULL;
}

/* The program may change its working folder before the file is read again. */
static bool set_path(struct wr_config *config, const char *path)
{
    const char *folder = config->sources[0].environment->folder;
    if (path[0] == '/' || !folder) {
        config->path = keep_text(config, path);
        return config->path;
    }
    struct wr_buffer absolute = {0};
    wr_buffer_put_format(&absolute, "%s/%s", folder, path);
    const char *text = wr_buffer_text(&absolute);
    config->path = keep_text(config, text);
    wr_buffer_fini(&absolute);
    return config->path;
}

struct wr_config *wr_config_from_file(const char *path, struct wr_environment *environment,
                                      struct wr_error *error)
{
    struct wr_document *document = wr_document_read(path, error);
    struct wr_config *config = document ? read_document(document, environment, error) : NULL;
    if (!config || set_path(config, path))
        return config;
    fail_memory(error);
    wr_config_drop(config);
    return NULL;
}

struct wr_config *wr_config_from_text(const char *name, const char *text, size_t length,
                                      struct wr_environment *environment, struct wr_error *error)
{
    struct wr_document *document = wr_document_parse(name, text, length, error);
    return document ? read_document(document, environment, error) : NULL;
}

/* ---- Calls of weir_configure ----------------------------------------------------------------- */

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_used(const struct wr_config *config, const char *handler, const char *except_group)
{
    for (size_t i = 0; i < config->route_count; i++) {
        const struct wr_config_route *route = &config->routes[i];
        if (strcmp(route->group, except_group) == 0)
            continue;
        for (size_t j = 0; j < route->count; j++)
            if (strcmp(route->items[j], handler) == 0)
                return true;
    }
    return false;
}

/* Copies all but a group's route, the call that made it, and the handler that nobody else uses then. */
static bool copy_without(struct wr_config *copy, const struct wr_config *config, const char *group)
{
    copy->settings = config->settings;
    copy->settings.labels = (weir_map){0};
    copy->defaults = config->defaults;
    copy->path = keep_text(copy, config->path);
    bool done = !copy->path == !config->path;
    for (size_t i = 0; done && i < config->source_count; i++)
        done = add_source(copy, config->sources[i].document, config->sources[i].environment);
    for (size_t i = 0; done && i < config->handler_count; i++) {
        const struct wr_config_handler *handler = &config->handlers[i];
        if (!handler->options || is_used(config, handler->name, group))
            done = add_handler(copy, handler);
    }
    for (size_t i = 0; done && i < config->route_count; i++)
        if (strcmp(config->routes[i].group, group) != 0)
            done = add_route(copy, &config->routes[i]);
    for (size_t i = 0; done && i < config->call_count; i++)
        if (strcmp(config->calls[i].group, group) != 0)
            done = add_call(copy, &config->calls[i]);
    return done;
}

static bool copy_labels(struct wr_config *copy, const struct wr_config *config)
{
    const weir_map *labels = &config->settings.labels;
    weir_label *items = wr_keep_get(&copy->keep, (labels->count + 1) * sizeof *items);
    if (!items)
        return false;
    for (size_t i = 0; i < labels->count; i++) {
        items[i] = (weir_label){keep_text(copy, labels->items[i].key), keep_text(copy, labels->items[i].value)};
        if (!items[i].key || !items[i].value)
            return false;
    }
    copy->settings.labels = (weir_map){labels->count, items};
    return true;
}

/* Whether a call may have a handler of that name: nobody else has it, or with the very same options. */
static bool may_have(const struct wr_config *config, const struct wr_config_call *call, const char *options,
                     const char *name, bool *exists)
{
    const struct wr_config_handler *known = wr_config_find_handler(config, name);
    *exists = known && is_same(known->type, call->type) && is_same(known->options, options);
    return *exists || (!known && !is_used(config, name, ""));
}

/* The handler's name: the one it had, its type's, or TYPE:GROUP. A queue belongs to a name: if two handlers
 * changed names, what waits for one would go to the other's destination. */
static const char *choose_name(struct wr_config *config, const struct wr_config_call *call, const char *options,
                               bool *exists, struct wr_error *error)
{
    struct wr_buffer text = {0};
    wr_buffer_put_format(&text, "%s:%s", call->type, call->group);
    const char *own = keep_text(config, wr_buffer_text(&text));
    wr_buffer_fini(&text);
    if (!own) {
        fail_memory(error);
        return NULL;
    }
    const char *names[] = {call->handler ? call->handler : call->type, call->type, own};
    for (size_t i = 0; i < WR_COUNT_OF(names); i++)
        if (may_have(config, call, options, names[i], exists))
            return names[i];
    wr_error_set(error, WEIR_ERR_CONFIG, "handlers \"%s\" and \"%s\" exist already, with other options",
                 call->type, own);
    return NULL;
}

/* A handler with nothing but defaults needs no description: a route may name its type. */
static bool needs_description(const struct wr_config *config, const struct wr_config_call *call)
{
    return call->options || (call->handler && !is_same(call->handler, call->type)) ||
           wr_config_find_handler(config, call->type);
}

static bool add_called_handler(struct wr_config *config, const struct wr_config_call *call, const char **name,
                               struct wr_error *error)
{
    *name = call->type;
    if (!needs_description(config, call))
        return true;
    const char *options = call->options ? call->options : "{}";
    struct wr_document *document = wr_document_parse("options", options, strlen(options), error);
    struct wr_environment *environment = wr_environment_take();
    bool exists = false, done = document && must_be(document->root, WR_NODE_OBJECT, error);
    if (done && !environment)
        done = fail_memory(error);
    *name = done ? choose_name(config, call, options, &exists, error) : NULL;
    done = done && *name;
    if (done && !exists) {
        struct wr_config_handler handler = {*name, call->type, NULL, document->root, environment, options};
        done =
            (add_source(config, document, environment) && add_handler(config, &handler)) || fail_memory(error);
    }
    wr_document_drop(document);
    wr_environment_drop(environment);
    return done;
}

static bool apply_call(struct wr_config *config, const struct wr_config_call *call, struct wr_error *error)
{
    struct wr_config_call made = *call;
    if (is_same(call->type, "inherit")) {
        wr_error_set(error, WEIR_ERR_CONFIG,
                     "\"inherit\" is not a handler type: in a route it stands for the parent's route");
        return false;
    }
    if (call->type && !add_called_handler(config, call, &made.handler, error))
        return false;
    struct wr_config_route route = {call->group, 1, &made.handler, NULL};
    return (add_call(config, &made) && (!call->type || add_route(config, &route))) || fail_memory(error);
}

static struct wr_config *with_call(const struct wr_config *config, const struct wr_config_call *call,
                                   struct wr_error *error)
{
    struct wr_config *copy = wr_config_new();
    bool done = copy && copy_without(copy, config, call->group) && copy_labels(copy, config);
    if (!done)
        fail_memory(error);
    if (done && apply_call(copy, call, error))
        return copy;
    wr_config_drop(copy);
    return NULL;
}

struct wr_config *wr_config_with_route(const struct wr_config *config, const char *group, const char *type,
                                       const char *options, struct wr_error *error)
{
    const struct wr_config_call call = {.group = group, .type = type, .options = options};
    return with_call(config, &call, error);
}

struct wr_config *wr_config_with_calls_of(struct wr_config *base, const struct wr_config *config,
                                          struct wr_error *error)
{
    wr_config_hold(base);
    for (size_t i = 0; base && i < config->call_count; i++) {
        struct wr_config *next = with_call(base, &config->calls[i], error);
        wr_config_drop(base);
        base = next;
    }
    return base;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

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

/* weir's own metrics go only where they are sent by name. */
static bool is_own_group(const char *group)
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
    return is_own_group(group) ? NULL : find_exact(config, "*", 1);
}
