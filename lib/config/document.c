#include "config/document.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text/buffer.h"
#include "text/error.h"
#include "os/file_perms.h"
#include "text/utf8.h"
#include "os/fd.h"

/* ---- Parsing --------------------------------------------------------------------------------- */

static void set_json_error(const struct wr_json *json, const char *name, const char *text, size_t length,
                           struct wr_error *error)
{
    unsigned line, column;
    if (!json->problem) {
        wr_error_no_memory(error, name);
        return;
    }
    wr_json_locate(text, length, json->offset, &line, &column);
    wr_error_set(error, WEIR_ERR_CONFIG, "%s:%u:%u: %s%s%s", name, line, column, json->problem,
                 json->detail[0] ? ": " : "", json->detail);
}

static void fill_node(struct wr_node *node, const struct wr_json_value *value)
{
    node->type = value->type;
    node->key = value->key;
    node->text = value->text;
    node->truth = value->truth;
    node->offset = value->offset;
    node->key_offset = value->key_offset;
    node->end = value->end;
}

/* Members follow their parents in the list: going backwards, each is prepended to its parent's members. */
static void link_nodes(struct wr_node *nodes, const struct wr_json *json)
{
    for (size_t i = json->count; i-- > 1;) {
        struct wr_node *parent = &nodes[json->values[i].parent];
        nodes[i].parent = parent;
        nodes[i].next = parent->first;
        parent->first = &nodes[i];
    }
    for (const struct wr_node *node = nodes; node < nodes + json->count; node++)
        if (node->next)
            nodes[node->next - nodes].index = node->index + 1;
}

/* Takes json->keep. NULL: out of memory. */
static struct wr_document *make_document(const char *name, const char *text, size_t length,
                                         struct wr_json *json)
{
    struct wr_document *document = calloc(1, sizeof *document);
    if (!document)
        return NULL;
    atomic_store_explicit(&document->references, 1, memory_order_relaxed);
    document->keep = json->keep;
    json->keep = (struct wr_region){0};
    struct wr_node *nodes = wr_region_alloc(&document->keep, json->count * sizeof *nodes);
    document->name = wr_region_text(&document->keep, name, strlen(name));
    document->text = wr_region_text(&document->keep, text, length);
    if (!nodes || !document->name || !document->text) {
        wr_document_drop(document);
        return NULL;
    }
    document->length = length;
    document->number = UINT32_MAX;
    document->value_count = json->count;
    document->root = nodes;
    for (size_t i = 0; i < json->count; i++) {
        nodes[i].document = document;
        fill_node(&nodes[i], &json->values[i]);
    }
    link_nodes(nodes, json);
    return document;
}

struct wr_document *wr_document_read_text(const char *name, const char *text, size_t length,
                                          struct wr_error *error)
{
    struct wr_json json = {0};
    struct wr_document *document = NULL;
    if (wr_json_read(&json, text, length))
        document = make_document(name, text, length, &json);
    if (!document)
        set_json_error(&json, name, text, length, error);
    wr_json_fini(&json);
    return document;
}

/* ---- Files ----------------------------------------------------------------------------------- */

/* status: of the open file. Where it is found by its trusted path, nobody else has put it. */
static bool check_perms(const char *path, const struct stat *status, struct wr_error *error)
{
    char *resolved;
    if (!wr_file_perms_check_path(path, &resolved, WEIR_ERR_CONFIG, error))
        return false;
    bool is_same = wr_fd_path_is_file(resolved, status->st_dev, status->st_ino);
    free(resolved);
    if (!is_same)
        wr_error_set(error, WEIR_ERR_CONFIG, "%s: replaced while it was being read", path);
    return is_same;
}

static bool check_file(int fd, const char *path, size_t *size, struct wr_error *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return wr_error_refuse(error, WEIR_ERR_CONFIG, "%s: %s", path, wr_error_system_text(errno));
    if (!S_ISREG(status.st_mode))
        return wr_error_refuse(error, WEIR_ERR_CONFIG, "%s: not a regular file", path);
    if (status.st_size > WR_JSON_BYTES_MAX)
        return wr_error_refuse(error, WEIR_ERR_CONFIG, "%s: %lld bytes; at most 16 MiB are allowed", path,
                               (long long)status.st_size);
    *size = (size_t)status.st_size;
    return check_perms(path, &status, error);
}

/* Reads up to `size` bytes: less if the file shrinks meanwhile. The caller frees the text. */
static char *read_all(int fd, const char *path, size_t size, size_t *length, struct wr_error *error)
{
    char *text = malloc(size + 1);
    if (!text) {
        wr_error_no_memory(error, path);
        return NULL;
    }
    *length = 0;
    while (*length < size) {
        ssize_t got = read(fd, text + *length, size - *length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            wr_error_set(error, WEIR_ERR_CONFIG, "%s: %s", path, wr_error_system_text(errno));
            free(text);
            return NULL;
        }
        if (got == 0)
            break;
        *length += (size_t)got;
    }
    return text;
}

char *wr_document_load(const char *path, size_t *length, struct wr_error *error)
{
    /* O_NONBLOCK: opening a named pipe must not block before it is refused */
    int fd = wr_fd_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0) {
        wr_error_set(error, WEIR_ERR_CONFIG, "%s: %s", path, wr_error_system_text(errno));
        return NULL;
    }
    size_t size = 0;
    char *text = check_file(fd, path, &size, error) ? read_all(fd, path, size, length, error) : NULL;
    close(fd);
    return text;
}

struct wr_document *wr_document_read_loaded(const char *path, const char *text, size_t length,
                                            struct wr_error *error)
{
    struct wr_document *document = wr_document_read_text(path, text, length, error);
    if (document)
        document->path = document->name;
    return document;
}

struct wr_document *wr_document_read(const char *path, struct wr_error *error)
{
    size_t length;
    char *text = wr_document_load(path, &length, error);
    struct wr_document *document = text ? wr_document_read_loaded(path, text, length, error) : NULL;
    free(text);
    return document;
}

void wr_document_hold(struct wr_document *document)
{
    atomic_fetch_add_explicit(&document->references, 1, memory_order_relaxed);
}

void wr_document_drop(struct wr_document *document)
{
    if (!document || atomic_fetch_sub_explicit(&document->references, 1, memory_order_acq_rel) != 1)
        return;
    wr_region_fini(&document->keep);
    free(document);
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

const struct wr_node *wr_node_member(const struct wr_node *object, const char *key)
{
    const struct wr_node *member = object && object->type == WR_NODE_OBJECT ? object->first : NULL;
    while (member && strcmp(member->key, key) != 0)
        member = member->next;
    return member;
}

size_t wr_node_count(const struct wr_node *node)
{
    size_t count = 0;
    for (const struct wr_node *member = node->first; member; member = member->next)
        count++;
    return count;
}

const char *wr_node_type_name(enum wr_node_type type)
{
    static const char *const names[] = {"null",     "true or false", "a number",
                                        "a string", "an array",      "an object"};
    return names[type];
}

/* Truncated, so that the message has room for the problem itself. */
static void put_key(struct wr_buffer *out, const char *key)
{
    enum { SHOWN_MAX = 80 };
    size_t length = strlen(key), shown = length;
    if (length > SHOWN_MAX)
        for (shown = SHOWN_MAX; ((unsigned char)key[shown] & 0xc0) == 0x80;)
            shown--;
    wr_utf8_show(out, key, shown, 0);
    wr_buffer_put_text(out, shown < length ? "..." : "");
}

static void put_place(struct wr_buffer *out, const struct wr_node *node)
{
    if (!node->parent)
        return;
    put_place(out, node->parent);
    if (!node->key) {
        wr_buffer_put_format(out, "[%zu]", node->index);
        return;
    }
    if (out->length)
        wr_buffer_put_char(out, '.');
    put_key(out, node->key);
}

static void set_error(const struct wr_node *node, size_t offset, struct wr_error *error, const char *format,
                      va_list arguments)
{
    const struct wr_document *document = node->document;
    unsigned line, column;
    wr_json_locate(document->text, document->length, offset, &line, &column);
    struct wr_buffer place = {0};
    put_place(&place, node);
    wr_buffer_put_text(&place, place.length ? ": " : "");
    char problem[WR_ERROR_ROOM];
    vsnprintf(problem, sizeof problem, format, arguments);
    const char *text = wr_buffer_text(&place);
    wr_error_set(error, WEIR_ERR_CONFIG, "%s:%u:%u: %s%s", document->name, line, column, text ? text : "",
                 problem);
    if (error)
        error->place = (uint64_t)document->number << 32 | (uint64_t)(node - document->root);
    wr_buffer_fini(&place);
}

bool wr_node_error(const struct wr_node *node, struct wr_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_error(node, node->offset, error, format, arguments);
    va_end(arguments);
    return false;
}

bool wr_node_problem(const struct wr_node *node, const struct wr_error *problem, struct wr_error *error)
{
    if (problem->code != WEIR_ERR_MEMORY)
        return wr_node_error(node, error, "%s", problem->text);
    *error = *problem;
    return false;
}

bool wr_node_key_error(const struct wr_node *node, struct wr_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_error(node, node->key_offset, error, format, arguments);
    va_end(arguments);
    return false;
}

const char *wr_node_show_place(const struct wr_node *node, char *out, size_t room)
{
    const struct wr_document *document = node->document;
    unsigned line, column;
    wr_json_locate(document->text, document->length, node->key_offset, &line, &column);
    snprintf(out, room, "%s:%u:%u", document->name, line, column);
    return out;
}

const char *wr_node_show(const struct wr_node *node, char *out, size_t room)
{
    switch (node->type) {
    case WR_NODE_STRING: return wr_utf8_quote(out, room, node->text, strlen(node->text));
    case WR_NODE_NUMBER: snprintf(out, room, "%.60s", node->text); break;
    case WR_NODE_BOOL: snprintf(out, room, "%s", node->truth ? "true" : "false"); break;
    default: snprintf(out, room, "%s", wr_node_type_name(node->type));
    }
    return out;
}

bool wr_node_check_type(const struct wr_node *node, enum wr_node_type type, struct wr_error *error)
{
    char shown[200];
    if (node->type == type)
        return true;
    return wr_node_error(node, error, "must be %s, got %s", wr_node_type_name(type),
                         wr_node_show(node, shown, sizeof shown));
}
