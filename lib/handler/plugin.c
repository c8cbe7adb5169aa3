#include "handler/plugin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text/buffer.h"
#include "os/clock.h"
#include "text/common.h"
#include "text/error.h"
#include "handler/loader.h"
#include "text/suggest.h"
#include "os/file_perms.h"
#include "config/common_options.h"
#include "text/utf8.h"

enum {
    NAME_LONGEST = 63,
    MOST_TYPES = 1000,
    SHOWN_ROOM = 200,
    DEFAULT_KINDS = WEIR_KINDS_DOUBLE | WEIR_KINDS_INT
};

/* What a handler type and a source type have in common has the same place in both. */
#define SAME_PLACE(field)                                                                                      \
    _Static_assert(offsetof(weir_handler_type, field) == offsetof(weir_source_type, field), #field)
SAME_PLACE(size);
SAME_PLACE(abi);
SAME_PLACE(flags);
SAME_PLACE(name);
SAME_PLACE(summary);
SAME_PLACE(options);
SAME_PLACE(option_row_size);
SAME_PLACE(options_size);
SAME_PLACE(defaults);

/* ---- Names ----------------------------------------------------------------------------------- */

bool wr_plugins_is_type_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    size_t length = strnlen(name, NAME_LONGEST + 1);
    return *name >= 'a' && *name <= 'z' && length <= NAME_LONGEST && strspn(name, allowed) == length;
}

/* ---- Checking a type ------------------------------------------------------------------------- */

static bool check_head(const struct wr_plugins_kind *kind, const void *given, const char *where,
                       struct wr_error *error)
{
    const weir_handler_type *type = given; /* or a source type */
    /* nothing but size and abi may be read before the numbers are known to be equal */
    if (type->abi != kind->abi)
        return wr_error_refuse(error, WEIR_ERR_PLUGIN, "%s: made for %s %u, but this weir has %s %u", where,
                               kind->number, type->abi, kind->number, kind->abi);
    if (type->size < kind->least)
        return wr_error_refuse(error, WEIR_ERR_PLUGIN, "%s: its %s is %zu bytes long; at least %zu are needed",
                               where, kind->noun, type->size, kind->least);
    if (!type->name || !wr_plugins_is_type_name(type->name)) {
        char shown[SHOWN_ROOM];
        return wr_error_refuse(
            error, WEIR_ERR_PLUGIN,
            "%s: %s is not a type's name; allowed: a-z, then a-z, 0-9 and _, at most %d", where,
            type->name ? wr_utf8_quote(shown, sizeof shown, type->name, strlen(type->name)) : "NULL",
            NAME_LONGEST);
    }
    return true;
}

bool wr_plugins_check_type(const struct wr_type *type, const char *missing, const char *where,
                           struct wr_error *error)
{
    const weir_handler_type *is = &type->is;
    const char *noun = type->kind->noun;
    if (!is->summary)
        missing = "summary";
    if (missing)
        wr_error_set(error, WEIR_ERR_PLUGIN, "%s: %s \"%s\" has no %s", where, noun, is->name, missing);
    else if (is->options && !WR_HAS_FIELD(weir_option, is->option_row_size, offset))
        wr_error_set(error, WEIR_ERR_PLUGIN,
                     "%s: %s \"%s\": its options' rows are %zu bytes long; %zu are needed", where, noun,
                     is->name, is->option_row_size, offsetof(weir_option, offset) + sizeof is->options->offset);
    else if (!wr_options_check_table(&type->options, error))
        wr_error_prefix(error, "%s: %s \"%s\": ", where, noun, is->name);
    else
        return true;
    return false;
}

bool wr_plugins_check_clash(const struct wr_type *type, const weir_option *clash, const char *whose,
                            const char *where, struct wr_error *error)
{
    if (clash)
        wr_error_set(error, WEIR_ERR_PLUGIN, "%s: %s \"%s\": option \"%s\": the name is reserved for %s", where,
                     type->kind->noun, type->is.name, clash->name, whose);
    return !clash;
}

static bool finish_handler(struct wr_type *type, const char *where, struct wr_error *error)
{
    weir_handler_type *is = &type->is;
    const char *missing = !is->create ? "create" : !is->emit ? "emit" : !is->destroy ? "destroy" : NULL;
    if (!is->kinds)
        is->kinds = DEFAULT_KINDS; /* not "all": a kind that is added later is withheld */
    return wr_plugins_check_type(type, missing, where, error) &&
           wr_plugins_check_clash(type, wr_common_options_find_clash(&type->options), "all handlers", where,
                                  error) &&
           (wr_common_options_select(&type->options, &type->common_options) ||
            wr_error_no_memory(error, where));
}

static const void *handler_at(void *entry, uint32_t index)
{
    return ((const weir_handler_type *(*)(uint32_t))(uintptr_t)entry)(index);
}

const struct wr_plugins_kind wr_plugins_handlers = {
    .noun = "handler type",
    .suffix = ".so",
    .entry = "weir_handler_type_at",
    .number = "ABI",
    .abi = WEIR_ABI,
    .least = offsetof(weir_handler_type, destroy) + sizeof((weir_handler_type *)0)->destroy,
    .bytes = sizeof(weir_handler_type),
    .offered = handler_at,
    .finish = finish_handler,
};

/* Makes the core's own copy. Returns NULL with the error set. */
static struct wr_type *adopt(struct wr_plugins *plugins, const struct wr_plugins_kind *kind, const void *given,
                             const char *path, struct wr_error *error)
{
    const char *where = path ? path : "registered type";
    if (!check_head(kind, given, where, error))
        return NULL;
    size_t size = *(const size_t *)given;
    struct wr_type *type = calloc(1, sizeof *type);
    char *path_copy = path ? strdup(path) : NULL;
    if (!type || (path && !path_copy)) {
        wr_error_no_memory(error, where);
    } else {
        memcpy(&type->is, given, size < kind->bytes ? size : kind->bytes);
        type->kind = kind;
        type->given = given;
        type->path = path_copy;
        type->home = plugins;
        type->options =
            (struct wr_options_table){type->is.options, type->is.option_row_size, type->is.options_size};
        if (kind->finish(type, where, error))
            return type;
    }
    free(path_copy);
    free(type);
    return NULL;
}

/* ---- The list -------------------------------------------------------------------------------- */

static bool is_from(const struct wr_type *type, const char *path)
{
    return !path || (type->path && strcmp(type->path, path) == 0);
}

/* A registered type takes precedence over a loaded one. */
static struct wr_type *find_known(const struct wr_plugins *plugins, const struct wr_plugins_kind *kind,
                                  const char *name, const char *path)
{
    struct wr_type *found = NULL;
    for (struct wr_type *type = plugins->types; type; type = type->next)
        if (type->kind == kind && strcmp(type->is.name, name) == 0 && is_from(type, path) &&
            (!found || type->registered))
            found = type;
    return found;
}

static struct wr_type *find_known_locked(struct wr_plugins *plugins, const struct wr_plugins_kind *kind,
                                         const char *name, const char *path)
{
    wr_lock_enter(&plugins->lock);
    struct wr_type *type = find_known(plugins, kind, name, path);
    wr_lock_leave(&plugins->lock);
    return type;
}

/* Appends the type, or frees it and returns false if the same one is there, as another thread may have inserted
 * it. A plugin takes precedence over a built-in type of the same name, which then is not inserted. */
static bool insert(struct wr_plugins *plugins, struct wr_type *type)
{
    wr_lock_enter(&plugins->lock);
    const struct wr_type *known = find_known(plugins, type->kind, type->is.name, type->path);
    bool same_place =
        known && known->registered == type->registered && (!known->path == !type->path || !type->path);
    if (!same_place) {
        struct wr_type **last = &plugins->types;
        while (*last)
            last = &(*last)->next;
        *last = type;
    }
    wr_lock_leave(&plugins->lock);
    if (same_place) {
        free((char *)type->path);
        free(type);
    }
    return !same_place;
}

/* Inserts the types that an entry point offers; only: the name of the one to insert, NULL: all. */
static bool insert_all(struct wr_plugins *plugins, const struct wr_plugins_kind *kind, void *entry,
                       const char *path, const char *only, struct wr_error *error)
{
    const weir_handler_type *given; /* or a source type */
    for (uint32_t i = 0; i < MOST_TYPES && (given = kind->offered(entry, i)); i++) {
        if (only && strcmp(given->name, only) != 0)
            continue;
        struct wr_type *type = adopt(plugins, kind, given, path, error);
        if (!type)
            return false;
        insert(plugins, type);
    }
    return true;
}

int wr_plugins_register(struct wr_plugins *plugins, const struct wr_plugins_kind *kind, const void *given,
                        void *context, struct wr_error *error)
{
    if (!given)
        return wr_error_set(error, WEIR_ERR_ARGUMENT, "the %s is NULL", kind->noun);
    struct wr_type *type = adopt(plugins, kind, given, NULL, error);
    if (!type)
        return error->code;
    char name[NAME_LONGEST + 1];
    snprintf(name, sizeof name, "%s", type->is.name);
    type->registered = true;
    type->context = context;
    if (insert(plugins, type))
        return 0;
    return wr_error_set(error, WEIR_ERR_PLUGIN, "registered type \"%s\": this name is registered already",
                        name);
}

struct wr_type *wr_plugins_next(struct wr_plugins *plugins, const struct wr_plugins_kind *kind,
                                const struct wr_type *type)
{
    wr_lock_enter(&plugins->lock);
    struct wr_type *next = type ? type->next : plugins->types;
    while (next && next->kind != kind)
        next = next->next;
    wr_lock_leave(&plugins->lock);
    return next;
}

/* ---- Fork ------------------------------------------------------------------------------------ */

void wr_plugins_enter(struct wr_plugins *plugins, struct wr_type *type)
{
    wr_lock_enter(&plugins->lock);
    while (plugins->held)
        wr_condition_wait(&plugins->change, &plugins->lock, WR_NEVER);
    plugins->foreign++;
    ++*(type ? &type->busy : &plugins->loading);
    wr_lock_leave(&plugins->lock);
}

void wr_plugins_leave(struct wr_plugins *plugins, struct wr_type *type)
{
    wr_lock_enter(&plugins->lock);
    plugins->foreign--;
    --*(type ? &type->busy : &plugins->loading);
    wr_condition_wake(&plugins->change);
    wr_lock_leave(&plugins->lock);
}

bool wr_plugins_begin_prepare(struct wr_plugins *plugins, struct wr_type *type)
{
    wr_lock_enter(&plugins->lock);
    while (plugins->held || type->preparing)
        wr_condition_wait(&plugins->change, &plugins->lock, WR_NEVER);
    bool has_one = type->kind == &wr_plugins_handlers ? type->is.prepare : type->source.prepare;
    bool needed = has_one && !type->prepared;
    if (needed) {
        type->preparing = true;
        plugins->foreign++;
        type->busy++;
    }
    wr_lock_leave(&plugins->lock);
    return needed;
}

/* In one section: a child that is forked between the call and this must not call it again. */
void wr_plugins_end_prepare(struct wr_plugins *plugins, struct wr_type *type, bool prepared)
{
    wr_lock_enter(&plugins->lock);
    type->preparing = false;
    type->prepared = prepared;
    plugins->foreign--;
    type->busy--;
    wr_condition_wake(&plugins->change);
    wr_lock_leave(&plugins->lock);
}

bool wr_plugins_hold(struct wr_plugins *plugins, int64_t deadline_ns)
{
    if (!wr_lock_enter_by(&plugins->lock, deadline_ns))
        return false;
    plugins->held = true;
    while (plugins->foreign && wr_clock_monotonic_ns() < deadline_ns)
        wr_condition_wait(&plugins->change, &plugins->lock, deadline_ns);
    return true;
}

void wr_plugins_let_go(struct wr_plugins *plugins)
{
    plugins->held = false;
    wr_condition_wake(&plugins->change);
    wr_lock_leave(&plugins->lock);
}

void wr_plugins_mark_interrupted(struct wr_type *type)
{
    bool shares_nothing = type->kind == &wr_plugins_handlers && type->is.flags & WEIR_TYPE_SHARES_NOTHING;
    if (!shares_nothing)
        atomic_store(&type->fork_unsafe, true);
}

/* What prepare does is for the whole process. */
void wr_plugins_mark_torn(struct wr_plugins *plugins)
{
    plugins->torn |= plugins->loading > 0;
    for (struct wr_type *type = plugins->types; type; type = type->next)
        if (type->preparing)
            atomic_store(&type->fork_unsafe, true);
        else if (type->busy)
            wr_plugins_mark_interrupted(type);
}

void wr_plugins_after_fork(struct wr_plugins *plugins)
{
    wr_lock_reset(&plugins->lock);
    plugins->change = (struct wr_condition){0};
    plugins->foreign = plugins->loading = 0;
    plugins->held = false;
    for (struct wr_type *type = plugins->types; type; type = type->next) {
        type->busy = 0;
        type->preparing = type->is_stuck = false;
    }
}

/* ---- Shared objects -------------------------------------------------------------------------- */

static void *load_resolved(struct wr_plugins *plugins, const struct wr_plugins_kind *kind, const char *path,
                           const char *resolved, struct wr_error *error)
{
    if (plugins->torn) {
        wr_error_set(error, WEIR_ERR_PLUGIN,
                     "%s: cannot be loaded: the process forked while a plugin was being loaded", path);
        return NULL;
    }
    void *library = dlopen(resolved, RTLD_NOW | RTLD_LOCAL);
    void *entry = NULL;
    if (library)
        wr_loader_prepare(library);
    if (!library)
        wr_loader_explain(resolved, error);
    else if (!(entry = dlsym(library, kind->entry)))
        wr_error_set(error, WEIR_ERR_PLUGIN, "%s: not a plugin with a %s: it has no symbol %s", path,
                     kind->noun, kind->entry);
    return entry;
}

/* The folder is checked as the plugin itself is, and not as one above it: it is searched, so others must not be
 * able to add to it. */
static bool check_folder(const char *resolved, struct wr_error *error)
{
    char *folder = strdup(resolved), *unused = NULL;
    bool good = folder ? wr_file_perms_check_path(dirname(folder), &unused, WEIR_ERR_PLUGIN, error)
                       : wr_error_no_memory(error, resolved);
    free(unused);
    free(folder);
    return good;
}

/* A named pipe or a terminal must not be opened: that could block for ever. */
static bool check_kind(const char *path, struct wr_error *error)
{
    struct stat status;
    int problem = stat(path, &status) == 0 ? 0 : errno;
    if (problem) {
        wr_error_set(error, WEIR_ERR_PLUGIN, "%s: %s", path, wr_error_system_text(problem));
        error->is_missing = problem == ENOENT || problem == ENOTDIR;
    } else if (!S_ISREG(status.st_mode)) {
        wr_error_set(error, WEIR_ERR_PLUGIN, "%s: not a regular file", path);
    } else {
        return true;
    }
    return false;
}

/* Returns false with the error set; else the caller frees *resolved. */
static bool resolve(const char *path, char **resolved, struct wr_error *error)
{
    if (!check_kind(path, error))
        return false;
    char *target = realpath(path, NULL);
    if (!target)
        wr_error_set(error, WEIR_ERR_PLUGIN, "%s: %s", path, wr_error_system_text(errno));
    bool good = target && check_folder(target, error) &&
                wr_file_perms_check_path(target, resolved, WEIR_ERR_PLUGIN, error);
    free(target);
    return good;
}

/* The object stays loaded even if it is refused: unloading would run its destructors, which is no safer. */
void *wr_plugins_open(struct wr_plugins *plugins, const struct wr_plugins_kind *kind, const char *path,
                      struct wr_error *error)
{
    char *resolved;
    if (!resolve(path, &resolved, error))
        return NULL;
    wr_plugins_enter(plugins, NULL);
    void *entry = load_resolved(plugins, kind, path, resolved, error);
    wr_plugins_leave(plugins, NULL);
    free(resolved);
    return entry;
}

bool wr_plugins_load(struct wr_plugins *plugins, const struct wr_plugins_kind *kind, const char *path,
                     struct wr_error *error)
{
    void *entry = wr_plugins_open(plugins, kind, path, error);
    if (!entry)
        return false;
    wr_plugins_enter(plugins, NULL);
    bool done = insert_all(plugins, kind, entry, path, NULL, error);
    wr_plugins_leave(plugins, NULL);
    return done;
}

/* Only the type of that name, so that no other built-in type takes the place of a plugin. */
static bool load_built_in(struct wr_plugins *plugins, const struct wr_plugins_kind *kind, const char *name,
                          struct wr_error *error)
{
    for (size_t i = 0; kind == &wr_plugins_handlers && wr_builtin_types[i]; i++)
        if (!insert_all(plugins, kind, (void *)(uintptr_t)wr_builtin_types[i], NULL, name, error))
            return false;
    return true;
}

/* ---- Searching ------------------------------------------------------------------------------- */

/* Calls visit for each folder in turn until it returns false. */
static void walk_folders(const struct wr_plugins *plugins, bool (*visit)(void *ctx, const char *folder),
                         void *ctx)
{
    const char *list = plugins->folders;
    while (list && *list) {
        size_t length = strcspn(list, ":");
        char *folder = strndup(list, length);
        bool go_on = !folder || !length || visit(ctx, folder);
        free(folder);
        if (!go_on)
            return;
        list += length + (list[length] == ':');
    }
    visit(ctx, WEIR_PLUGINDIR);
}

struct search {
    const struct wr_plugins_kind *kind;
    const char *name;
    char *path;       /* found */
    char *unreadable; /* the first folder that cannot be searched, because of `problem`, an errno */
    int problem;
    struct wr_buffer tried;
};

static bool look_into(void *ctx, const char *folder)
{
    struct search *search = ctx;
    struct wr_buffer path = {0};
    wr_buffer_put_format(&path, "%s/%s%s", folder, search->name, search->kind->suffix);
    wr_buffer_put_format(&search->tried, "%s%s", search->tried.length ? ", " : "", folder);
    const char *text = wr_buffer_text(&path);
    struct stat status; /* not access(2): that asks for the real user, who is another one in a setuid program */
    if (text && stat(text, &status) == 0) {
        search->path = wr_buffer_take(&path);
    } else if (text && errno != ENOENT && errno != ENOTDIR && !search->problem) {
        search->problem = errno;
        search->unreadable = strdup(folder);
    }
    wr_buffer_fini(&path);
    return !search->path;
}

/* Reads the name of a type from that of its file. Returns false if it is not such a file. */
static bool read_name(char name[NAME_LONGEST + 1], const char *file, const char *suffix)
{
    size_t length = strlen(file), rest = strlen(suffix);
    if (length <= rest || length - rest > NAME_LONGEST || strcmp(file + length - rest, suffix) != 0)
        return false;
    memcpy(name, file, length - rest);
    name[length - rest] = '\0';
    return wr_plugins_is_type_name(name); /* not NAME.source.so among handlers */
}

struct collect {
    const char *suffix;
    struct wr_suggest *suggest;
};

static bool collect_names(void *ctx, const char *folder)
{
    const struct collect *collect = ctx;
    char name[NAME_LONGEST + 1];
    DIR *directory = opendir(folder);
    struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        if (read_name(name, entry->d_name, collect->suffix))
            wr_suggest_try(collect->suggest, name);
    if (directory)
        closedir(directory);
    return true;
}

static void suggest_of(struct wr_plugins *plugins, const struct wr_plugins_kind *kind,
                       struct wr_suggest *suggest)
{
    struct collect collect = {kind->suffix, suggest};
    walk_folders(plugins, collect_names, &collect);
    for (const struct wr_type *type = wr_plugins_next(plugins, kind, NULL); type;
         type = wr_plugins_next(plugins, kind, type))
        wr_suggest_try(suggest, type->is.name);
}

void wr_plugins_suggest(struct wr_plugins *plugins, struct wr_suggest *suggest)
{
    suggest_of(plugins, &wr_plugins_handlers, suggest);
}

static const char *put_nearest(struct wr_plugins *plugins, const struct wr_plugins_kind *kind, const char *name,
                               char *out, size_t room)
{
    struct wr_suggest suggest;
    wr_suggest_init(&suggest, name);
    suggest_of(plugins, kind, &suggest);
    return wr_suggest_text(&suggest, out, room);
}

/* A plugin that is there but cannot be read is not another one misspelt. */
static void fail_search(struct wr_plugins *plugins, struct search *search, struct wr_error *error)
{
    char nearest[SHOWN_ROOM];
    const char *tried = wr_buffer_text(&search->tried);
    if (search->problem)
        wr_error_set(error, WEIR_ERR_PLUGIN, "\"%s\": the plugin folder %s cannot be searched: %s",
                     search->name, search->unreadable ? search->unreadable : "",
                     wr_error_system_text(search->problem));
    else
        wr_error_set(error, WEIR_ERR_PLUGIN, "\"%s\" is not an installed %s (looked in %s)%s", search->name,
                     search->kind->noun, tried ? tried : WEIR_PLUGINDIR,
                     put_nearest(plugins, search->kind, search->name, nearest, sizeof nearest));
    error->is_missing = !search->problem;
}

static void fini_search(struct search *search)
{
    free(search->path);
    free(search->unreadable);
    wr_buffer_fini(&search->tried);
}

/* is_searched: by its name alone. */
static bool check_name(struct wr_plugins *plugins, const struct wr_plugins_kind *kind, const char *name,
                       bool is_searched, struct wr_error *error)
{
    char shown[SHOWN_ROOM], nearest[SHOWN_ROOM] = "";
    if (wr_plugins_is_type_name(name))
        return true;
    if (is_searched)
        put_nearest(plugins, kind, name, nearest, sizeof nearest);
    return wr_error_refuse(error, WEIR_ERR_PLUGIN,
                           "%s is not a type's name; allowed: a-z, then a-z, 0-9 and _%s",
                           wr_utf8_quote(shown, sizeof shown, name, strlen(name)), nearest);
}

char *wr_plugins_locate(struct wr_plugins *plugins, const struct wr_plugins_kind *kind, const char *name,
                        struct wr_error *error)
{
    struct search search = {.kind = kind, .name = name};
    walk_folders(plugins, look_into, &search);
    char *path = search.path;
    search.path = NULL;
    if (!path)
        fail_search(plugins, &search, error);
    fini_search(&search);
    return path;
}

static struct wr_type *load_from(struct wr_plugins *plugins, const struct wr_plugins_kind *kind,
                                 const char *name, const char *path, struct wr_error *error)
{
    if (!wr_plugins_load(plugins, kind, path, error))
        return NULL;
    struct wr_type *type = find_known_locked(plugins, kind, name, path);
    if (!type)
        wr_error_set(error, WEIR_ERR_PLUGIN, "%s: it has no %s \"%s\"", path, kind->noun, name);
    return type;
}

static struct wr_type *search_for(struct wr_plugins *plugins, const struct wr_plugins_kind *kind,
                                  const char *name, struct wr_error *error)
{
    struct search search = {.kind = kind, .name = name};
    struct wr_type *type = NULL;
    walk_folders(plugins, look_into, &search);
    if (search.path)
        type = load_from(plugins, kind, name, search.path, error);
    else if (load_built_in(plugins, kind, name, error) &&
             !(type = find_known_locked(plugins, kind, name, NULL)))
        fail_search(plugins, &search, error);
    fini_search(&search);
    return type;
}

struct wr_type *wr_plugins_find(struct wr_plugins *plugins, const struct wr_plugins_kind *kind,
                                const char *name, const char *path, struct wr_error *error)
{
    if (!check_name(plugins, kind, name, !path, error))
        return NULL;
    struct wr_type *type = find_known_locked(plugins, kind, name, path);
    if (type)
        return type;
    return path ? load_from(plugins, kind, name, path, error) : search_for(plugins, kind, name, error);
}

/* ---- Everything ------------------------------------------------------------------------------ */

/* Loading all types of a kind. */
struct load_all {
    struct wr_plugins *plugins;
    const struct wr_plugins_kind *kind;
    void (*complain)(void *ctx, const struct wr_error *error); /* may be NULL */
    void *ctx;
};

static void complain(const struct load_all *all, const struct wr_error *error)
{
    if (all->complain)
        all->complain(all->ctx, error);
}

static void load_file(const struct load_all *all, const char *folder, const char *file)
{
    struct wr_buffer path = {0};
    struct wr_error error = {0};
    char name[NAME_LONGEST + 1];
    if (!read_name(name, file, all->kind->suffix))
        return;
    wr_buffer_put_format(&path, "%s/%s", folder, file);
    const char *text = wr_buffer_text(&path);
    if (text && !find_known_locked(all->plugins, all->kind, name, NULL) &&
        !wr_plugins_load(all->plugins, all->kind, text, &error))
        complain(all, &error);
    wr_buffer_fini(&path);
}

static bool load_folder(void *ctx, const char *folder)
{
    const struct load_all *all = ctx;
    struct dirent **entries;
    struct wr_error error = {0};
    int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0 && errno != ENOENT && errno != ENOTDIR) {
        wr_error_set(&error, WEIR_ERR_PLUGIN, "%s: %s", folder, wr_error_system_text(errno));
        complain(all, &error);
    }
    for (int i = 0; i < count; i++) {
        load_file(all, folder, entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return true;
}

void wr_plugins_load_all(struct wr_plugins *plugins, const struct wr_plugins_kind *kind,
                         void (*report)(void *ctx, const struct wr_error *error), void *ctx)
{
    struct wr_error error = {0};
    struct load_all all = {plugins, kind, report, ctx};
    walk_folders(plugins, load_folder, &all);
    if (!load_built_in(plugins, kind, NULL, &error))
        complain(&all, &error);
}
