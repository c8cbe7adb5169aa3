#include "config/include.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "os/dir_list.h"
#include "text/array.h"
#include "text/buffer.h"
#include "text/error.h"
#include "text/json.h"
#include "text/name_index.h"

/* The files that are being read: each includes the one before it in the list. */
struct chain {
    const struct chain *above;
    const char *real; /* without symbolic links; NULL: a text */
    const char *name; /* in messages */
    unsigned depth;
};

struct reader {
    struct wr_config *config;
    struct wr_name_index files; /* all that were read, by their real paths */
    size_t bytes, values, patterns;
    struct wr_error *error;
};

static bool read_document(struct reader *reader, struct wr_document *document, const struct chain *chain);

/* Called before the file or folder is read: a change meanwhile is seen afterwards. */
static bool watch(const struct reader *reader, const char *path)
{
    return wr_config_add_watched(reader->config, path, wr_file_mark_take(path));
}

/* ---- One file -------------------------------------------------------------------------------- */

/* Puts the problem at the place that includes the file. */
static bool refuse(const struct reader *reader, const struct wr_node *item, const char *path,
                   const char *problem)
{
    return wr_node_error(item, reader->error, "%s: %s", path, problem);
}

/* The files between the one that includes itself and its second appearance. */
static void put_chain(struct wr_buffer *out, const struct chain *chain, const struct chain *first)
{
    if (chain == first)
        return;
    put_chain(out, chain->above, first);
    wr_buffer_put_format(out, "%s%s", out->length ? ", " : ", by way of ", chain->name);
}

static bool refuse_cycle(const struct reader *reader, const struct wr_node *item, const char *path,
                         const struct chain *chain, const struct chain *first)
{
    struct wr_buffer between = {0};
    put_chain(&between, chain, first);
    const char *text = wr_buffer_text(&between);
    wr_node_error(item, reader->error, "%s: includes itself%s", path, text ? text : "");
    wr_buffer_fini(&between);
    return false;
}

static bool check_limits(const struct reader *reader, const struct wr_node *item, const char *path,
                         const struct chain *chain)
{
    if (chain->depth == WR_INCLUDE_DEPTH_MAX)
        return refuse(reader, item, path, "files include files too deeply; at most 8 levels are allowed");
    if (reader->files.count == WR_INCLUDE_FILES_MAX)
        return refuse(reader, item, path, "too many files; at most 1,000 are allowed");
    return true;
}

/* NULL: error is set. */
static struct wr_document *open_document(struct reader *reader, const struct wr_node *item, const char *path)
{
    size_t length;
    struct wr_error problem = {0};
    char *text = wr_document_load(path, &length, &problem);
    if (!text) {
        wr_node_problem(item, &problem, reader->error);
        return NULL;
    }
    struct wr_document *document = wr_document_read_loaded(path, text, length, reader->error);
    free(text);
    return document;
}

static bool count_text(struct reader *reader, const struct wr_document *document, const struct wr_node *item)
{
    reader->bytes += document->length;
    reader->values += document->value_count;
    if (reader->bytes > WR_JSON_BYTES_MAX)
        return refuse(reader, item, document->name,
                      "with it, the configuration's files are longer than 16 MiB");
    if (reader->values > WR_JSON_VALUES_MAX)
        return refuse(reader, item, document->name,
                      "with it, the configuration's files have more than 1,000,000 values");
    return true;
}

static bool read_new_file(struct reader *reader, const struct wr_node *item, const char *path,
                          const struct chain *chain)
{
    if (!check_limits(reader, item, path, chain->above))
        return false;
    if (!watch(reader, path)) /* also if it cannot be read: that may be mended */
        return wr_error_no_memory(reader->error, NULL);
    struct wr_document *document = open_document(reader, item, path);
    if (!document)
        return false;
    bool done = count_text(reader, document, item);
    if (done)
        done = wr_name_index_add(&reader->files, chain->real, reader->files.count) ||
               wr_error_no_memory(reader->error, NULL);
    done = done && read_document(reader, document, chain);
    wr_document_drop(document);
    return done;
}

/* real: taken by the configuration's memory. */
static bool read_real_file(struct reader *reader, const struct wr_node *item, const char *path,
                           const char *real, const struct chain *above)
{
    const struct chain chain = {above, real, path, above->depth + 1};
    for (const struct chain *at = above; at; at = at->above)
        if (at->real && strcmp(at->real, real) == 0)
            return refuse_cycle(reader, item, path, above, at);
    if (wr_name_index_has(&reader->files, real))
        return true;
    return read_new_file(reader, item, path, &chain);
}

static bool read_file(struct reader *reader, const struct wr_node *item, const char *path,
                      const struct chain *above)
{
    char *real = realpath(path, NULL);
    if (!real) {
        const char *problem = wr_error_system_text(errno);
        return watch(reader, path) ? refuse(reader, item, path, problem)
                                   : wr_error_no_memory(reader->error, NULL);
    }
    const char *kept = wr_config_keep_text(reader->config, real);
    free(real);
    return kept ? read_real_file(reader, item, path, kept, above) : wr_error_no_memory(reader->error, NULL);
}

/* ---- Patterns -------------------------------------------------------------------------------- */

struct names {
    char **items;
    uint32_t count, room;
};

static void free_names(struct names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
}

static bool add_name(struct names *names, const char *name)
{
    char *copy = WR_ARRAY_HAS_ROOM(&names->items, &names->room, names->count + 1) ? strdup(name) : NULL;
    if (copy)
        names->items[names->count++] = copy;
    return copy;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char no_memory[] = "out of memory";

/* Sorted by bytes, so that the order does not depend on the locale. Returns the problem, or NULL. */
static const char *list_matches(struct names *names, const char *folder, const char *pattern)
{
    DIR *open_folder = opendir(folder);
    if (!open_folder)
        return wr_error_system_text(errno);
    const struct dirent *entry;
    const char *fault = NULL;
    int problem = 0;
    while (!fault && (entry = wr_dir_list_next(open_folder, &problem))) {
        if (fnmatch(pattern, entry->d_name, FNM_PERIOD) != 0)
            continue;
        if (names->count == WR_INCLUDE_FILES_MAX)
            fault = "too many files; at most 1,000 are allowed";
        else if (!add_name(names, entry->d_name))
            fault = no_memory;
    }
    closedir(open_folder);
    if (names->count)
        qsort(names->items, names->count, sizeof *names->items, compare_names);
    return problem ? wr_error_system_text(problem) : fault;
}

static bool read_match(struct reader *reader, const struct wr_node *item, const char *folder, const char *name,
                       const struct chain *chain)
{
    struct wr_buffer path = {0};
    wr_buffer_put_format(&path, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name);
    const char *text = wr_buffer_text(&path);
    bool done = text ? read_file(reader, item, text, chain) : wr_error_no_memory(reader->error, NULL);
    wr_buffer_fini(&path);
    return done;
}

/* The folder is watched, because files may be added to it. It must exist, but may have no match. */
static bool read_folder(struct reader *reader, const struct wr_node *item, const char *folder,
                        const char *pattern, const struct chain *chain)
{
    struct names names = {0};
    if (reader->patterns++ == WR_INCLUDE_PATTERNS_MAX)
        return refuse(reader, item, pattern, "too many patterns; at most 1,000 are allowed");
    if (!watch(reader, folder))
        return wr_error_no_memory(reader->error, NULL);
    const char *fault = list_matches(&names, folder, pattern);
    bool done = !fault || (fault == no_memory ? wr_error_no_memory(reader->error, NULL)
                                              : refuse(reader, item, folder, fault));
    for (uint32_t i = 0; done && i < names.count; i++)
        done = wr_problems_go_on(reader->config->problems,
                                 read_match(reader, item, folder, names.items[i], chain), reader->error);
    free_names(&names);
    return done;
}

static bool read_pattern(struct reader *reader, const struct wr_node *item, const char *path,
                         const struct chain *chain)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return read_folder(reader, item, ".", path, chain);
    char *folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
    bool done =
        folder ? read_folder(reader, item, folder, slash + 1, chain) : wr_error_no_memory(reader->error, NULL);
    free(folder);
    return done;
}

/* ---- The section ----------------------------------------------------------------------------- */

/* Relative to the folder of the including file; of a text, to the working folder. */
static void put_folder(struct wr_buffer *out, const struct reader *reader, const struct wr_document *document)
{
    const char *slash = document->path ? strrchr(document->path, '/') : NULL;
    if (slash)
        wr_buffer_put(out, document->path, (size_t)(slash - document->path) + 1);
    else if (!document->path && reader->config->environment->folder)
        wr_buffer_put_format(out, "%s/", reader->config->environment->folder);
}

/* path: as it is written, expanded. */
static bool check_path(const struct wr_node *item, const char *path, struct wr_error *error)
{
    const char *slash = strrchr(path, '/'), *wildcard = strpbrk(path, "*?[");
    if (!*path)
        wr_node_error(item, error, "must be the path of a file, or a pattern like \"conf.d/*.json\", got \"\"");
    else if (slash && wildcard && wildcard < slash)
        wr_node_error(item, error, "%s: only the last part of a path may have *, ? or [...]", path);
    else
        return true;
    return false;
}

/* path: as it is written, expanded. */
static bool read_path(struct reader *reader, const struct wr_node *item, const char *path,
                      const struct chain *chain)
{
    struct wr_buffer whole = {0};
    if (!check_path(item, path, reader->error))
        return false;
    if (path[0] != '/')
        put_folder(&whole, reader, item->document);
    wr_buffer_put_text(&whole, path);
    const char *slash = strrchr(path, '/');
    bool is_pattern = strpbrk(slash ? slash : path, "*?[");
    char *text = wr_buffer_take(&whole);
    bool done = text ? (is_pattern ? read_pattern : read_file)(reader, item, text, chain)
                     : wr_error_no_memory(reader->error, NULL);
    free(text);
    return done;
}

static bool read_item(struct reader *reader, const struct wr_node *item, const struct chain *chain)
{
    const char *path;
    return wr_node_check_type(item, WR_NODE_STRING, reader->error) &&
           wr_config_read_string(reader->config, item, &path, reader->error) &&
           read_path(reader, item, path, chain);
}

static bool read_section(struct reader *reader, const struct wr_node *node, const struct chain *chain)
{
    if (node->type == WR_NODE_STRING)
        return read_item(reader, node, chain);
    if (!wr_node_check_type(node, WR_NODE_ARRAY, reader->error))
        return false;
    for (const struct wr_node *item = node->first; item; item = item->next)
        if (!wr_problems_go_on(reader->config->problems, read_item(reader, item, chain), reader->error))
            return false;
    return true;
}

static bool read_document(struct reader *reader, struct wr_document *document, const struct chain *chain)
{
    const struct wr_node *node = wr_node_member(document->root, "include");
    if (node && !read_section(reader, node, chain))
        return false;
    document->number = (uint32_t)reader->config->document_count;
    return wr_config_add_document(reader->config, document) || wr_error_no_memory(reader->error, NULL);
}

bool wr_include_read(struct wr_config *config, struct wr_error *error)
{
    struct wr_document *document = config->document;
    char *real = document->path ? realpath(document->path, NULL) : NULL;
    const struct chain chain = {NULL, real, document->name, 0};
    struct reader reader = {
        .config = config, .bytes = document->length, .values = document->value_count, .error = error};
    bool done = read_document(&reader, document, &chain);
    wr_name_index_fini(&reader.files);
    free(real);
    return done;
}
