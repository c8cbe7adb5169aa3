#include "config/parse.h"

#include <stdlib.h>
#include <string.h>

#include "text/buffer.h"
#include "text/common.h"
#include "config/common_options.h"
#include "text/error.h"
#include "registry/name.h"
#include "config/options.h"
#include "text/suggest.h"
#include "text/utf8.h"

enum { SHOWN_ROOM = 200 };

static bool fail_memory(struct wr_error *error)
{
    return wr_error_no_memory(error, NULL);
}

/* ---- Settings -------------------------------------------------------------------------------- */

/* The folder is shared by processes with different working folders: no relative paths. */
static bool check_status(const struct wr_config *config, const struct wr_node *node, struct wr_error *error)
{
    const char *status = config->settings.status;
    char shown[SHOWN_ROOM];
    if (status[0] == '/' || strcmp(status, "off") == 0 || strcmp(status, "auto") == 0)
        return true;
    wr_node_error(wr_node_member(node, "status"), error,
                  "must be off, auto, or the absolute path of a folder, got %s",
                  wr_utf8_quote(shown, sizeof shown, status, strlen(status)));
    return false;
}

static bool read_settings(struct wr_config *config, const struct wr_node *node,
                          const struct wr_environment *environment, struct wr_error *error)
{
    struct wr_options_fill fill = {WR_OPTIONS_TABLE(wr_settings_rows, struct wr_settings), &config->settings,
                                   environment, &config->keep, NULL};
    return wr_node_check_type(node, WR_NODE_OBJECT, error) &&
           wr_options_set_members(&fill, 1, NULL, node, error) && check_status(config, node, error);
}

static bool check_key(const struct wr_node *node, bool is_group, struct wr_error *error)
{
    struct wr_error problem;
    if (is_group ? wr_name_check_group(node->key, &problem)
                 : wr_name_check(node->key, "handler name", &problem))
        return true;
    wr_node_key_error(node, error, "%s", problem.text);
    return false;
}

/* ---- Handlers -------------------------------------------------------------------------------- */

/* handlers."*": only options that all handlers have. */
static bool read_defaults(struct wr_config *config, const struct wr_node *node,
                          const struct wr_environment *environment, struct wr_error *error)
{
    static const char *const others[] = {"format", NULL};
    struct wr_common_options common_options = {0};
    struct wr_options_fill fill = {wr_common_options_table(), &common_options, environment, &config->keep,
                                   NULL};
    if (!wr_node_check_type(node, WR_NODE_OBJECT, error) ||
        !wr_options_set_members(&fill, 1, others, node, error))
        return false;
    config->defaults = node;
    return true;
}

/* A string member of a handler, expanded. Without one, *text is unchanged. */
static bool read_string(struct wr_config *config, const struct wr_node *object, const char *key,
                        const struct wr_environment *environment, const char **text, struct wr_error *error)
{
    const weir_option row = {key, WEIR_OPTION_STRING, 0, NULL, NULL, "", 0};
    const struct wr_node *node = wr_node_member(object, key);
    struct wr_options_fill fill = {{0}, text, environment, &config->keep, NULL};
    return !node || wr_options_set_node(&fill, &row, node, error);
}

static bool read_handler(struct wr_config *config, const struct wr_node *node,
                         struct wr_environment *environment, struct wr_error *error)
{
    struct wr_config_handler handler = {.name = node->key, .node = node, .environment = environment};
    if (strcmp(node->key, "*") == 0)
        return read_defaults(config, node, environment, error);
    if (!check_key(node, false, error) || !wr_node_check_type(node, WR_NODE_OBJECT, error))
        return false;
    if (strcmp(node->key, "inherit") == 0) {
        wr_node_key_error(node, error, "the name is reserved: in a route, \"inherit\" is the parent's route");
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
        wr_node_error(
            wr_node_member(node, "plugin"), error,
            "must be absolute, got %s; without \"plugin\", the plugin folders are searched for the type",
            wr_utf8_quote(shown, sizeof shown, handler.plugin, strlen(handler.plugin)));
        return false;
    }
    return wr_config_add_handler(config, &handler) || fail_memory(error);
}

static bool read_handlers(struct wr_config *config, const struct wr_node *node,
                          struct wr_environment *environment, struct wr_error *error)
{
    if (!wr_node_check_type(node, WR_NODE_OBJECT, error))
        return false;
    for (const struct wr_node *member = node->first; member; member = member->next)
        if (!read_handler(config, member, environment, error))
            return false;
    return true;
}

/* ---- Routes ---------------------------------------------------------------------------------- */

static bool read_route_item(const struct wr_node *node, const struct wr_node *item, const char **name,
                            struct wr_error *error)
{
    char shown[SHOWN_ROOM];
    if (item->type != WR_NODE_STRING) {
        wr_node_error(
            item, error,
            "must be the name of a handler or of an installed handler type, \"inherit\", or an array of "
            "these, got %s",
            wr_node_show(item, shown, sizeof shown));
        return false;
    }
    *name = item->text;
    if (strcmp(item->text, "inherit") == 0 && strcmp(node->key, "*") == 0) {
        wr_node_error(item, error, "must not be \"inherit\": \"*\" has no parent");
        return false;
    }
    return true;
}

static bool read_route(struct wr_config *config, const struct wr_node *node, struct wr_error *error)
{
    if (strcmp(node->key, "*") != 0 && !check_key(node, true, error))
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
    if (done && !wr_config_add_route(config, &route))
        done = fail_memory(error);
    free(items);
    return done;
}

static bool read_groups(struct wr_config *config, const struct wr_node *node, struct wr_error *error)
{
    if (!wr_node_check_type(node, WR_NODE_OBJECT, error))
        return false;
    for (const struct wr_node *member = node->first; member; member = member->next)
        if (!read_route(config, member, error))
            return false;
    return true;
}

/* ---- The document ---------------------------------------------------------------------------- */

static bool refuse_section(const struct wr_node *node, struct wr_error *error)
{
    static const char *const sections[] = {"$schema", "settings", "handlers", "groups"};
    struct wr_suggest suggest;
    char nearest[SHOWN_ROOM];
    wr_suggest_init(&suggest, node->key);
    for (size_t i = 0; i < WR_COUNT_OF(sections); i++)
        wr_suggest_try(&suggest, sections[i]);
    wr_node_key_error(node, error, "unknown section%s allowed: $schema, settings, handlers, groups",
                      suggest.best ? wr_suggest_text(&suggest, nearest, sizeof nearest) : ";");
    return false;
}

static bool read_section(struct wr_config *config, const struct wr_node *node,
                         struct wr_environment *environment, struct wr_error *error)
{
    if (strcmp(node->key, "settings") == 0)
        return read_settings(config, node, environment, error);
    if (strcmp(node->key, "handlers") == 0)
        return read_handlers(config, node, environment, error);
    if (strcmp(node->key, "groups") == 0)
        return read_groups(config, node, error);
    if (strcmp(node->key, "$schema") == 0)
        return wr_node_check_type(node, WR_NODE_STRING, error);
    return refuse_section(node, error);
}

static bool read_root(struct wr_config *config, const struct wr_node *root, struct wr_environment *environment,
                      struct wr_error *error)
{
    if (!wr_node_check_type(root, WR_NODE_OBJECT, error))
        return false;
    for (const struct wr_node *section = root->first; section; section = section->next)
        if (!read_section(config, section, environment, error))
            return false;
    return true;
}

struct wr_config *wr_parse_document(struct wr_document *document, struct wr_environment *environment,
                                    struct wr_error *error)
{
    if (environment)
        wr_environment_hold(environment);
    else
        environment = wr_environment_take();
    struct wr_config *config = environment ? wr_config_make(environment, error) : NULL;
    if (!config) {
        if (!environment)
            fail_memory(error);
        wr_document_drop(document);
        wr_environment_drop(environment);
        return NULL;
    }
    config->document = document;
    config->environment = environment;
    if (read_root(config, document->root, environment, error))
        return config;
    wr_config_drop(config);
    return NULL;
}

/* Made absolute: the program may change its working folder before the file is reread. */
static bool set_path(struct wr_config *config, const char *path)
{
    const char *folder = config->environment->folder;
    if (path[0] == '/' || !folder) {
        config->path = wr_config_keep_text(config, path);
        return config->path;
    }
    struct wr_buffer absolute = {0};
    wr_buffer_put_format(&absolute, "%s/%s", folder, path);
    const char *text = wr_buffer_text(&absolute);
    config->path = wr_config_keep_text(config, text);
    wr_buffer_fini(&absolute);
    return config->path;
}

struct wr_config *wr_parse_file(const char *path, struct wr_environment *environment, struct wr_error *error)
{
    struct wr_document *document = wr_document_read(path, error);
    struct wr_config *config = document ? wr_parse_document(document, environment, error) : NULL;
    if (!config || set_path(config, path))
        return config;
    fail_memory(error);
    wr_config_drop(config);
    return NULL;
}

struct wr_config *wr_parse_text(const char *name, const char *text, size_t length,
                                struct wr_environment *environment, struct wr_error *error)
{
    struct wr_document *document = wr_document_parse(name, text, length, error);
    return document ? wr_parse_document(document, environment, error) : NULL;
}
