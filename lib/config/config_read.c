#include "config/config_read.h"

#include <stdlib.h>
#include <string.h>

#include "text/buffer.h"
#include "text/common.h"
#include "config/common_options.h"
#include "config/include.h"
#include "config/metrics.h"
#include "text/error.h"
#include "registry/labels.h"
#include "registry/name.h"
#include "config/options.h"
#include "config/sections.h"
#include "config/transform.h"
#include "text/name_index.h"
#include "text/suggest.h"
#include "text/utf8.h"

enum { SHOWN_ROOM = 200 };

static bool go_on(const struct wr_config *config, bool done, struct wr_error *error)
{
    return wr_problems_go_on(config->problems, done, error);
}

/* ---- Settings -------------------------------------------------------------------------------- */

/* The folder is shared by processes with different working folders: no relative paths. */
static bool check_status(const struct wr_config *config, const struct wr_node *node, struct wr_error *error)
{
    const char *status = config->settings.status;
    char shown[SHOWN_ROOM];
    if (status[0] == '/' || strcmp(status, "off") == 0 || strcmp(status, "auto") == 0)
        return true;
    return wr_node_error(wr_node_member(node, "status"), error,
                         "must be off, auto, or the absolute path of a folder, got %s",
                         wr_utf8_quote(shown, sizeof shown, status, strlen(status)));
}

/* The labels of `own`, and the inherited ones with other keys. false: out of memory. */
static bool merge_labels(struct wr_config *config, const weir_map *own, const weir_map *inherited)
{
    struct wr_name_index keys = {0};
    size_t count = own->count;
    weir_label *items = wr_region_alloc(&config->keep, (count + inherited->count) * sizeof *items);
    bool done = items;
    for (size_t i = 0; done && i < count; i++) {
        items[i] = own->items[i];
        done = wr_name_index_add(&keys, items[i].key, i);
    }
    for (size_t i = 0; done && i < inherited->count; i++) {
        const weir_label *label = &inherited->items[i];
        if (!wr_name_index_has(&keys, label->key))
            items[count++] = *label;
    }
    wr_name_index_fini(&keys);
    config->settings.labels = (weir_map){count, items};
    return done;
}

/* Labels of several files are added up; those of this one take precedence over inherited ones. */
static bool add_labels(struct wr_config *config, const struct wr_node *node, const weir_map *inherited,
                       struct wr_error *error)
{
    struct wr_error problem = {0};
    const struct wr_node *labels = wr_node_member(node, "labels");
    const weir_map own = config->settings.labels;
    if (!labels)
        return true;
    config->labels = labels;
    if (!wr_labels_check(&own, &problem))
        return wr_node_error(labels, error, "%s", problem.text);
    return !inherited->count || merge_labels(config, &own, inherited) || wr_error_no_memory(error, NULL);
}

static bool check_instance(struct wr_config *config, const struct wr_node *node, struct wr_error *error)
{
    struct wr_error problem = {0};
    const struct wr_node *instance = wr_node_member(node, "instance");
    if (!instance)
        return true;
    config->instance = instance;
    if (wr_name_check_text(config->settings.instance, WR_NAME_VALUE_LONGEST, "label value", &problem))
        return true;
    return wr_node_error(instance, error, "%s", problem.text);
}

static bool read_settings(struct wr_config *config, const struct wr_node *node, struct wr_error *error)
{
    const struct wr_options_fill fill = wr_config_fill_settings(config);
    const weir_map inherited = config->settings.labels;
    if (!wr_node_check_type(node, WR_NODE_OBJECT, error) ||
        !go_on(config, wr_options_set_members(&fill, 1, NULL, node, error), error) ||
        !go_on(config, check_status(config, node, error), error) ||
        !go_on(config, check_instance(config, node, error), error) ||
        !add_labels(config, node, &inherited, error))
        return false;
    config->metrics.max_series_per_name = (uint32_t)config->settings.max_series_per_name;
    return true;
}

bool wr_config_read_labels_again(struct wr_config *config, struct wr_error *error)
{
    const struct wr_options_fill fill = wr_config_fill_settings(config);
    const weir_option *row = wr_options_find(&fill.table, "labels");
    config->settings.labels = (weir_map){0};
    for (size_t i = 0; i < config->document_count; i++) {
        const struct wr_node *settings = wr_node_member(config->documents[i]->root, "settings");
        const struct wr_node *node = wr_node_member(settings, row->name);
        const weir_map inherited = config->settings.labels;
        if (node &&
            (!wr_options_set_node(&fill, row, node, error) || !add_labels(config, settings, &inherited, error)))
            return false;
    }
    return wr_transform_expand_again(config, error);
}

/* Whether unknown keys are ignored, which must be known before the rest is read. The documents' last value
 * counts. */
static bool read_unknown_keys(struct wr_config *config, struct wr_error *error)
{
    const struct wr_options_fill fill = wr_config_fill_settings(config);
    const weir_option *row = wr_options_find(&fill.table, "unknown_keys");
    for (size_t i = 0; i < config->document_count; i++) {
        const struct wr_node *settings = wr_node_member(config->documents[i]->root, "settings");
        const struct wr_node *node = wr_node_member(settings, row->name);
        if (node && !go_on(config, wr_options_set_node(&fill, row, node, error), error))
            return false;
    }
    config->ignores_unknown = config->settings.unknown_keys == WR_UNKNOWN_KEYS_WARN;
    return true;
}

static bool check_key(const struct wr_node *node, bool is_group, struct wr_error *error)
{
    struct wr_error problem;
    if (is_group ? wr_name_check_group(node->key, &problem)
                 : wr_name_check(node->key, "handler name", &problem))
        return true;
    return wr_node_key_error(node, error, "%s", problem.text);
}

/* ---- Handlers -------------------------------------------------------------------------------- */

/* handlers."*": only options that all handlers have. */
static bool read_defaults(struct wr_config *config, const struct wr_node *node, struct wr_error *error)
{
    static const char *const others[] = {"format", NULL};
    struct wr_common_options common_options = {0};
    const struct wr_options_fill fill = wr_config_fill(config, wr_common_options_table(), &common_options);
    if (!wr_node_check_type(node, WR_NODE_OBJECT, error))
        return false;
    config->defaults = node; /* also with errors: no handler that has them is made */
    return wr_options_set_members(&fill, 1, others, node, error);
}

/* A string member of a handler, expanded. Without one, *text is unchanged. */
static bool read_string(struct wr_config *config, const struct wr_node *object, const char *key,
                        const char **text, struct wr_error *error)
{
    const struct wr_node *node = wr_node_member(object, key);
    return !node || wr_config_read_string(config, node, text, error);
}

/* What handlers and sources have in common: their type, and where that is. missing: the message if there is no
 * type. */
static bool read_type(struct wr_config *config, struct wr_config_handler *handler, const char *missing,
                      struct wr_error *error)
{
    const struct wr_node *node = handler->node;
    if (!read_string(config, node, "type", &handler->type, error) ||
        !read_string(config, node, "plugin", &handler->plugin, error))
        return false;
    if (!handler->type)
        return wr_node_error(node, error, "the option \"type\" is missing: %s", missing);
    if (handler->plugin && handler->plugin[0] != '/') {
        char shown[SHOWN_ROOM];
        return wr_node_error(
            wr_node_member(node, "plugin"), error,
            "must be absolute, got %s; without \"plugin\", the plugin folders are searched for the type",
            wr_utf8_quote(shown, sizeof shown, handler->plugin, strlen(handler->plugin)));
    }
    return true;
}

static bool read_described(struct wr_config *config, struct wr_config_handler *handler, struct wr_error *error)
{
    const struct wr_node *node = handler->node;
    if (!check_key(node, false, error) || !wr_node_check_type(node, WR_NODE_OBJECT, error))
        return false;
    if (strcmp(node->key, "inherit") == 0)
        return wr_node_key_error(node, error,
                                 "the name is reserved: in a route, \"inherit\" is the parent's route");
    return read_type(config, handler, "the handler type, like \"file\" or \"console\"", error);
}

static bool read_handler(struct wr_config *config, const struct wr_node *node, struct wr_error *error)
{
    struct wr_config_handler handler = {.name = node->key, .node = node, .environment = config->environment};
    if (!go_on(config, wr_config_define(config, node, "handlers", "", error), error))
        return false;
    if (strcmp(node->key, "*") == 0)
        return read_defaults(config, node, error);
    if (config->handler_count == WR_CONFIG_HANDLERS_MAX)
        return wr_node_key_error(node, error, "too many handlers; at most 10,000 are allowed");
    bool described = read_described(config, &handler, error);
    if (!go_on(config, described, error))
        return false;
    if (!described)
        handler.type = NULL; /* the name is known: a route that has it is no further error */
    return wr_config_add_handler(config, &handler) || wr_error_no_memory(error, NULL);
}

/* Its options are checked when its type is known: see lib/source. */
static bool read_source(struct wr_config *config, const struct wr_node *node, struct wr_error *error)
{
    struct wr_config_handler source = {.name = node->key, .node = node, .environment = config->environment};
    if (!go_on(config, wr_config_define(config, node, "sources", "", error), error))
        return false;
    if (config->source_count == WR_CONFIG_SOURCES_MAX)
        return wr_node_key_error(node, error, "too many sources; at most 1,000 are allowed");
    struct wr_error problem;
    if (!wr_name_check(node->key, "source name", &problem))
        return wr_node_key_error(node, error, "%s", problem.text);
    return wr_node_check_type(node, WR_NODE_OBJECT, error) &&
           read_type(config, &source, "the source type, like \"fifo\" or \"statsd\"", error) &&
           (wr_config_add_source(config, &source) || wr_error_no_memory(error, NULL));
}

/* ---- Routes ---------------------------------------------------------------------------------- */

/* The name of a handler, or "inherit". */
static bool read_route_name(struct wr_config *config, const struct wr_node *route, const struct wr_node *item,
                            const char **name, struct wr_error *error)
{
    *name = item->text;
    if (strchr(item->text, '$') && !wr_config_read_string(config, item, name, error))
        return false;
    if (strcmp(*name, "inherit") == 0 && strcmp(route->key, "*") == 0)
        return wr_node_error(item, error, "must not be \"inherit\": \"*\" has no parent");
    return true;
}

/* Appends an item; transform NULL: the values as they are. */
static bool add_item(struct wr_config *config, struct wr_config_route *route, const struct wr_node *item,
                     struct wr_transform *transform, struct wr_error *error)
{
    if (route->count == WR_CONFIG_ROUTE_MAX)
        return wr_node_error(item, error, "too many handlers in one route; at most 1,000 are allowed");
    if (!read_route_name(config, route->node, item, &route->items[route->count], error))
        return false;
    route->transforms[route->count] = transform;
    route->nodes[route->count++] = item;
    return true;
}

/* The handlers of an object. */
static bool read_to(struct wr_config *config, struct wr_config_route *route, const struct wr_node *object,
                    struct wr_transform *transform, struct wr_error *error)
{
    char shown[SHOWN_ROOM];
    const struct wr_node *to = wr_node_member(object, "to");
    if (!to)
        return wr_node_error(object, error, "\"to\" is missing: a handler, or an array of handlers");
    const struct wr_node *item = to->type == WR_NODE_ARRAY ? to->first : to;
    if (!item)
        return wr_node_error(to, error, "must name at least one handler");
    for (; item; item = to->type == WR_NODE_ARRAY ? item->next : NULL) {
        if (item->type != WR_NODE_STRING)
            return wr_node_error(
                item, error,
                "must be the name of a handler or of an installed handler type, or an array of these, got %s",
                wr_node_show(item, shown, sizeof shown));
        if (!add_item(config, route, item, transform, error))
            return false;
        if (strcmp(route->items[route->count - 1], "inherit") == 0)
            return wr_node_error(
                item, error, "must not be \"inherit\": an object names handlers; \"inherit\" stands beside it");
    }
    return true;
}

static bool read_route_item(struct wr_config *config, struct wr_config_route *route, const struct wr_node *item,
                            struct wr_error *error)
{
    char shown[SHOWN_ROOM];
    struct wr_transform *transform;
    if (item->type == WR_NODE_STRING)
        return add_item(config, route, item, NULL, error);
    if (item->type == WR_NODE_OBJECT)
        return go_on(config, wr_transform_read(config, item, &transform, error), error) &&
               read_to(config, route, item, transform, error);
    return wr_node_error(
        item, error,
        "must be the name of a handler or of an installed handler type, \"inherit\", an object with "
        "\"to\", or an array of these, got %s",
        wr_node_show(item, shown, sizeof shown));
}

/* A handler gets a value at most once from a route, so an object must name handlers that nothing else names. */
static bool check_repeated(const struct wr_config_route *route, struct wr_error *error)
{
    struct wr_name_index names = {0};
    bool valid = true;
    for (size_t i = 0; valid && i < route->count; i++) {
        size_t first = wr_name_index_find(&names, route->items[i], strlen(route->items[i]));
        if (first != SIZE_MAX && (route->transforms[i] || route->transforms[first])) {
            wr_node_error(route->nodes[i], error,
                          "the route names \"%s\" already; a handler of an object is named once",
                          route->items[i]);
            valid = false;
        } else if (!wr_name_index_add(&names, route->items[i], i)) {
            valid = wr_error_no_memory(error, NULL);
        }
    }
    wr_name_index_fini(&names);
    return valid;
}

static bool has_transforms(const struct wr_config_route *route)
{
    for (size_t i = 0; i < route->count; i++)
        if (route->transforms[i])
            return true;
    return false;
}

static bool read_items(struct wr_config *config, struct wr_config_route *route, struct wr_error *error)
{
    const struct wr_node *node = route->node;
    const struct wr_node *item = node->type == WR_NODE_ARRAY ? node->first : node;
    for (; item; item = node->type == WR_NODE_ARRAY ? item->next : NULL)
        if (!go_on(config, read_route_item(config, route, item, error), error))
            return false;
    if (!has_transforms(route))
        route->transforms = NULL;
    else if (!check_repeated(route, error))
        return false;
    return wr_config_add_route(config, route) || wr_error_no_memory(error, NULL);
}

static bool read_route(struct wr_config *config, const struct wr_node *node, struct wr_error *error)
{
    const char *items[WR_CONFIG_ROUTE_MAX];
    const struct wr_node *nodes[WR_CONFIG_ROUTE_MAX];
    struct wr_transform *transforms[WR_CONFIG_ROUTE_MAX];
    if (!go_on(config, wr_config_define(config, node, "groups", "", error), error) ||
        (strcmp(node->key, "*") != 0 && !check_key(node, true, error)))
        return false;
    if (config->route_count == WR_CONFIG_GROUPS_MAX)
        return wr_node_key_error(node, error, "too many groups; at most 100,000 are allowed");
    struct wr_config_route route = {
        .group = node->key, .items = items, .nodes = nodes, .transforms = transforms, .node = node};
    return read_items(config, &route, error);
}

/* ---- The document ---------------------------------------------------------------------------- */

/* "$schema, include, ..." */
static void list_sections(struct wr_buffer *out)
{
    for (unsigned i = 0; i < WR_SECTION_UNKNOWN; i++)
        wr_buffer_put_format(out, "%s%s", i ? ", " : "", wr_sections_name((enum wr_section)i));
}

static bool refuse_section(struct wr_config *config, const struct wr_node *node, struct wr_error *error)
{
    struct wr_suggest suggest;
    struct wr_buffer allowed = {0};
    char nearest[SHOWN_ROOM];
    wr_suggest_init(&suggest, node->key);
    for (unsigned i = 0; i < WR_SECTION_UNKNOWN; i++)
        wr_suggest_try(&suggest, wr_sections_name((enum wr_section)i));
    const char *home = wr_sections_home(node->key);
    if (config->ignores_unknown)
        return wr_unknown_keys_add(&config->unknown, node, "unknown section",
                                   wr_suggest_text(&suggest, nearest, sizeof nearest), error);
    list_sections(&allowed);
    const char *list = wr_buffer_text(&allowed);
    wr_node_key_error(node, error, "unknown section%s%s%s allowed: %s", home ? "; " : "", home ? home : "",
                      *suggest.best && !home ? wr_suggest_text(&suggest, nearest, sizeof nearest) : ";",
                      list ? list : "");
    wr_buffer_fini(&allowed);
    return false;
}

static bool read_members(struct wr_config *config, const struct wr_node *node,
                         bool (*read)(struct wr_config *config, const struct wr_node *member,
                                      struct wr_error *error),
                         struct wr_error *error)
{
    if (!wr_node_check_type(node, WR_NODE_OBJECT, error))
        return false;
    for (const struct wr_node *member = node->first; member; member = member->next)
        if (!go_on(config, read(config, member, error), error))
            return false;
    return true;
}

static bool read_section(struct wr_config *config, const struct wr_node *node, struct wr_error *error)
{
    switch (wr_sections_find(node->key)) {
    case WR_SECTION_SCHEMA: return wr_node_check_type(node, WR_NODE_STRING, error);
    case WR_SECTION_INCLUDE: return true; /* done: see wr_include_read */
    case WR_SECTION_SETTINGS: return read_settings(config, node, error);
    case WR_SECTION_HANDLERS: return read_members(config, node, read_handler, error);
    case WR_SECTION_GROUPS: return read_members(config, node, read_route, error);
    case WR_SECTION_METRICS: return wr_metrics_read(config, node, error);
    case WR_SECTION_SOURCES: return read_members(config, node, read_source, error);
    case WR_SECTION_UNKNOWN: break;
    }
    return refuse_section(config, node, error);
}

static bool read_root(struct wr_config *config, const struct wr_node *root, struct wr_error *error)
{
    if (!wr_node_check_type(root, WR_NODE_OBJECT, error))
        return false;
    for (const struct wr_node *section = root->first; section; section = section->next)
        if (!go_on(config, read_section(config, section, error), error))
            return false;
    return true;
}

static bool read_documents(struct wr_config *config, struct wr_error *error)
{
    for (size_t i = 0; i < config->document_count; i++)
        if (!go_on(config, read_root(config, config->documents[i]->root, error), error))
            return false;
    return wr_problems_any(config->problems) || wr_metric_rules_index(&config->metrics) ||
           wr_error_no_memory(error, NULL);
}

/* Without all files, what is missing in one of them would be reported of others. */
static bool read_all(struct wr_config *config, struct wr_error *error)
{
    return wr_include_read(config, error) && !wr_problems_any(config->problems) &&
           read_unknown_keys(config, error) && read_documents(config, error);
}

/* What is wanted of a configuration besides itself. */
struct wanted {
    struct wr_config **tried; /* as for wr_config_read_again; NULL: not wanted */
    struct wr_problems *problems;
};

/* The configuration of a document, which it takes. */
static struct wr_config *read_from_document(struct wr_document *document, struct wr_environment *environment,
                                            const struct wanted *wanted, struct wr_error *error)
{
    if (environment)
        wr_environment_hold(environment);
    else
        environment = wr_environment_take();
    struct wr_config *config = environment ? wr_config_make(error) : NULL;
    if (!config) {
        if (!environment)
            wr_error_no_memory(error, NULL);
        wr_document_drop(document);
        wr_environment_drop(environment);
        return NULL;
    }
    config->document = document;
    config->environment = environment;
    config->problems = wanted->problems;
    bool done = read_all(config, error);
    wr_name_index_fini(&config->definitions);
    if (done)
        return config;
    if (wanted->tried)
        *wanted->tried = config;
    else
        wr_config_drop(config);
    return NULL;
}

/* Made absolute: the program may change its working folder before the file is reread. */
static bool set_path(struct wr_config *config, const char *path, struct wr_file_mark mark)
{
    config->path = wr_config_keep_path(config, path);
    return config->path && wr_config_add_watched(config, path, mark);
}

static struct wr_config *read_file(const char *path, struct wr_environment *environment,
                                   const struct wanted *wanted, struct wr_error *error)
{
    struct wr_file_mark mark = wr_file_mark_take(path); /* before it is read: a later change is seen */
    struct wr_document *document = wr_document_read(path, error);
    struct wr_config *config = document ? read_from_document(document, environment, wanted, error) : NULL;
    if (!config || set_path(config, path, mark))
        return config;
    wr_error_no_memory(error, NULL);
    wr_config_drop(config);
    return NULL;
}

struct wr_config *wr_config_read_file(const char *path, struct wr_environment *environment,
                                      struct wr_error *error)
{
    return read_file(path, environment, &(struct wanted){0}, error);
}

static struct wr_config *read_text(const char *name, const char *text, size_t length,
                                   struct wr_environment *environment, const struct wanted *wanted,
                                   struct wr_error *error)
{
    struct wr_document *document = wr_document_read_text(name, text, length, error);
    return document ? read_from_document(document, environment, wanted, error) : NULL;
}

struct wr_config *wr_config_read_text(const char *name, const char *text, size_t length,
                                      struct wr_environment *environment, struct wr_error *error)
{
    return read_text(name, text, length, environment, &(struct wanted){0}, error);
}

struct wr_config *wr_config_read_again(const struct wr_config *config, struct wr_environment *environment,
                                       struct wr_config **tried, struct wr_error *error)
{
    const struct wr_document *text = config->document;
    const struct wanted wanted = {.tried = tried};
    *tried = NULL;
    return config->path ? read_file(config->path, environment, &wanted, error)
                        : read_text(text->name, text->text, text->length, environment, &wanted, error);
}

static const char *get_variable(const char *name)
{
    const char *text = secure_getenv(name);
    return text && *text ? text : NULL;
}

bool wr_config_has_variable(const char *name)
{
    return get_variable(name);
}

static struct wr_config *read_variable(const char *name, const struct wanted *wanted, struct wr_error *error)
{
    const char *text = get_variable(name);
    if (text)
        return text[strspn(text, " \t\r\n")] == '{' ? read_text(name, text, strlen(text), NULL, wanted, error)
                                                    : read_file(text, NULL, wanted, error);
    wr_error_set(error, WEIR_ERR_CONFIG, "%s is not set", name);
    return NULL;
}

struct wr_config *wr_config_read_variable(const char *name, struct wr_error *error)
{
    return read_variable(name, &(struct wanted){0}, error);
}

struct wr_config *wr_config_read_all(const char *path, struct wr_problems *problems, struct wr_error *error)
{
    const struct wanted wanted = {.problems = problems};
    return path ? read_file(path, NULL, &wanted, error) : read_variable("WEIR_CONFIG", &wanted, error);
}
