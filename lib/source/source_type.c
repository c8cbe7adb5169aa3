#include "source/source_type.h"

#include <stdlib.h>
#include <string.h>

#include "source/source_options.h"
#include "text/error.h"

enum { MOST_TYPES = 1000 };

typedef const weir_source_type *type_at(uint32_t index);

/* ---- Checking a type ------------------------------------------------------------------------- */

static bool check_head(const weir_source_type *type, const char *path, struct wr_error *error)
{
    /* nothing but size and abi may be read before the numbers are known to be equal */
    if (type->abi != WEIR_SOURCE_ABI)
        wr_error_set(error, WEIR_ERR_PLUGIN, "%s: made for source ABI %u, but this weir has source ABI %u",
                     path, type->abi, WEIR_SOURCE_ABI);
    else if (!WEIR_HAS(type, destroy)) /* the last of the required fields */
        wr_error_set(error, WEIR_ERR_PLUGIN, "%s: its source type is %zu bytes long; at least %zu are needed",
                     path, type->size, offsetof(weir_source_type, destroy) + sizeof type->destroy);
    else if (!type->name || !wr_plugins_is_type_name(type->name))
        wr_error_set(error, WEIR_ERR_PLUGIN,
                     "%s: a source type's name must be a-z, then a-z, 0-9 and _, at most 63", path);
    else
        return true;
    return false;
}

static void refuse_option(const struct wr_source_type *type, const weir_option *row, const char *whose,
                          struct wr_error *error)
{
    wr_error_set(error, WEIR_ERR_PLUGIN, "%s: source type \"%s\": option \"%s\": the name is reserved for %s",
                 type->path, type->is.name, row->name, whose);
}

static bool check_body(const struct wr_source_type *type, struct wr_error *error)
{
    const weir_source_type *is = &type->is;
    const weir_option *row;
    const char *missing = !is->summary   ? "summary"
                          : !is->create  ? "create"
                          : !is->run     ? "run"
                          : !is->destroy ? "destroy"
                                         : NULL;
    if (missing)
        wr_error_set(error, WEIR_ERR_PLUGIN, "%s: source type \"%s\" has no %s", type->path, is->name, missing);
    else if (is->options && is->option_row_size < offsetof(weir_option, offset) + sizeof is->options->offset)
        wr_error_set(error, WEIR_ERR_PLUGIN,
                     "%s: source type \"%s\": its options' rows are %zu bytes long; %zu are needed", type->path,
                     is->name, is->option_row_size, offsetof(weir_option, offset) + sizeof is->options->offset);
    else if (!wr_options_check_table(&type->options, error))
        wr_error_prefix(error, "%s: source type \"%s\": ", type->path, is->name);
    else if ((row = wr_source_options_find_clash(&type->options, false)))
        refuse_option(type, row, "all sources", error);
    else if (is->flags & WEIR_SOURCE_TYPE_PARSES && (row = wr_source_options_find_clash(&type->options, true)))
        refuse_option(type, row, "sources that read text", error);
    else
        return true;
    return false;
}

/* Makes the core's own copy. Returns NULL with the error set. */
static struct wr_source_type *adopt(const weir_source_type *given, const char *path, struct wr_error *error)
{
    if (!check_head(given, path, error))
        return NULL;
    struct wr_source_type *type = calloc(1, sizeof *type);
    char *path_copy = strdup(path);
    if (type && path_copy) {
        memcpy(&type->is, given, given->size < sizeof type->is ? given->size : sizeof type->is);
        type->given = given;
        type->path = path_copy;
        type->options =
            (struct wr_options_table){type->is.options, type->is.option_row_size, type->is.options_size};
        if (check_body(type, error))
            return type;
    } else {
        wr_error_no_memory(error, path);
    }
    free(path_copy);
    free(type);
    return NULL;
}

/* ---- The list -------------------------------------------------------------------------------- */

static struct wr_source_type *find_known(struct wr_source_types *types, const char *name, const char *path)
{
    wr_lock_enter(&types->lock);
    struct wr_source_type *type = types->first;
    while (type && (strcmp(type->is.name, name) != 0 || (path && strcmp(type->path, path) != 0)))
        type = type->next;
    wr_lock_leave(&types->lock);
    return type;
}

/* Two threads may load the same type at once: then both copies stay, and the first is found. */
static void insert(struct wr_source_types *types, struct wr_source_type *type)
{
    wr_lock_enter(&types->lock);
    struct wr_source_type **last = &types->first;
    while (*last)
        last = &(*last)->next;
    *last = type;
    wr_lock_leave(&types->lock);
}

static bool insert_all(struct wr_source_types *types, type_at *entry, const char *path, struct wr_error *error)
{
    const weir_source_type *given;
    for (uint32_t i = 0; i < MOST_TYPES && (given = entry(i)); i++) {
        struct wr_source_type *type = adopt(given, path, error);
        if (!type)
            return false;
        insert(types, type);
    }
    return true;
}

/* ---- Loading --------------------------------------------------------------------------------- */

bool wr_source_types_load(struct wr_source_types *types, struct wr_plugins *plugins, const char *path,
                          struct wr_error *error)
{
    type_at *entry = (type_at *)(uintptr_t)wr_plugins_open(plugins, &wr_plugins_sources, path, error);
    if (!entry)
        return false;
    wr_plugins_enter(plugins, NULL);
    bool done = insert_all(types, entry, path, error);
    wr_plugins_leave(plugins, NULL);
    return done;
}

static struct wr_source_type *load(struct wr_source_types *types, struct wr_plugins *plugins, const char *name,
                                   const char *path, struct wr_error *error)
{
    if (!wr_source_types_load(types, plugins, path, error))
        return NULL;
    struct wr_source_type *type = find_known(types, name, path);
    if (!type)
        wr_error_set(error, WEIR_ERR_PLUGIN, "%s: it has no source type \"%s\"", path, name);
    return type;
}

struct wr_source_type *wr_source_types_find(struct wr_source_types *types, struct wr_plugins *plugins,
                                            const char *name, const char *path, struct wr_error *error)
{
    struct wr_source_type *type = find_known(types, name, path);
    if (type)
        return type;
    if (path)
        return load(types, plugins, name, path, error);
    char *found = wr_plugins_locate(plugins, &wr_plugins_sources, name, error);
    type = found ? load(types, plugins, name, found, error) : NULL;
    free(found);
    return type;
}

/* ---- Everything ------------------------------------------------------------------------------ */

struct load_all {
    struct wr_source_types *types;
    struct wr_plugins *plugins;
};

static void load_one(const struct wr_plugins_sweep *sweep, const char *name, const char *path)
{
    struct wr_error error = {0};
    const struct load_all *all = sweep->owner;
    if (!find_known(all->types, name, NULL) && !wr_source_types_load(all->types, all->plugins, path, &error))
        sweep->complain(sweep->ctx, &error);
}

void wr_source_types_load_all(struct wr_source_types *types, struct wr_plugins *plugins,
                              void (*complain)(void *ctx, const struct wr_error *error), void *ctx)
{
    struct load_all all = {types, plugins};
    const struct wr_plugins_sweep sweep = {&wr_plugins_sources, load_one, &all, complain, ctx};
    wr_plugins_walk(plugins, &sweep);
}

struct wr_source_type *wr_source_types_next(struct wr_source_types *types, const struct wr_source_type *type)
{
    wr_lock_enter(&types->lock);
    struct wr_source_type *next = type ? type->next : types->first;
    wr_lock_leave(&types->lock);
    return next;
}
