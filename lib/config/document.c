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

static void fail_scan(const struct wr_scan *scan, const char *name, const char *text, size_t length,
                      struct wr_error *error)
{
    unsigned line, column;
    if (!scan->problem) {
        wr_error_no_memory(error, name);
        return;
    }
    wr_scan_locate(text, length, scan->offset, &line, &column);
    wr_error_set(error, WEIR_ERR_CONFIG, "%s:%u:%u: %s%s%s", name, line, column, scan->problem,
                 scan->detail[0] ? ": " : "", scan->detail);
}

static void fill_node(struct wr_node *node, const struct wr_scan_value *value)
{
    node->type = value->type;
    node->key = value->key;
    node->text = value->text;
    node->truth = value->truth;
    node->offset = value->offset;
    node->key_offset = value->key_offset;
}

/* Members follow their parents in the list, so going through it from the end puts each before those of its
 * parent's that come behind it. */
static void link_nodes(struct wr_node *nodes, const struct wr_scan *scan)
{
    for (size_t i = scan->count; i-- > 1;) {
        struct wr_node *parent = &nodes[scan->values[i].parent];
        nodes[i].parent = parent;
        nodes[i].next = parent->first;
        parent->first = &nodes[i];
    }
    for (const struct wr_node *node = nodes; node < nodes + scan->count; node++)
        if (node->next)
            nodes[node->next - nodes].place = node->place + 1;
}

/* Takes over what the scan has kept. */
static struct wr_document *make_document(const char *name, const char *text, size_t length,
                                         struct wr_scan *scan)
{
    struct wr_document *document = calloc(1, sizeof *document);
    if (!document)
        return NULL;
    atomic_store_explicit(&document->references, 1, memory_order_relaxed);
    document->keep = scan->keep;
    scan->keep = (struct wr_region){0};
    struct wr_node *nodes = wr_region_alloc(&document->keep, scan->count * sizeof *nodes);
    document->name = wr_region_text(&document->keep, name, strlen(name));
    document->text = wr_region_text(&document->keep, text, length);
    if (!nodes || !document->name || !document->text) {
        wr_document_drop(document);
        return NULL;
    }
    document->length = length;
    document->root = nodes;
    for (size_t i = 0; i < scan->count; i++) {
        nodes[i].document = document;
        fill_node(&nodes[i], &scan->values[i]);
    }
    link_nodes(nodes, scan);
    return document;
}

struct wr_document *wr_document_parse(const char *name, const char *text, size_t length, struct wr_error *error)
{
    struct wr_scan scan;
    struct wr_document *document = NULL;
    if (wr_scan_run(&scan, text, length))
        document = make_document(name, text, length, &scan);
    if (!document)
        fail_scan(&scan, name, text, length, error);
    wr_scan_fini(&scan);
    return document;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static bool check_file(int fd, const char *path, size_t *size, struct wr_error *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        wr_error_set(error, WEIR_ERR_CONFIG, "%s: %s", path, wr_error_of_system(errno));
        return false;
    }
    if (!S_ISREG(status.st_mode)) {
        wr_error_set(error, WEIR_ERR_CONFIG, "%s: not a regular file", path);
        return false;
    }
    if (status.st_size > WR_SCAN_LONGEST) {
        wr_error_set(error, WEIR_ERR_CONFIG, "%s: %lld bytes; at most 16 MiB are allowed", path,
                     (long long)status.st_size);
        return false;
    }
    *size = (size_t)status.st_size;
    return wr_file_perms_check_status(path, &status, WEIR_ERR_CONFIG, error);
}

/* Reads what is there, up to the size that was found; a file that shrinks meanwhile is read as it is. */
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
            wr_error_set(error, WEIR_ERR_CONFIG, "%s: %s", path, wr_error_of_system(errno));
            free(text);
            return NULL;
        }
        if (got == 0)
            break;
        *length += (size_t)got;
    }
    return text;
}

struct wr_document *wr_document_read(const char *path, struct wr_error *error)
{
    /* O_NONBLOCK: a named pipe must not hold us up before it is refused */
    int fd = wr_fd_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0) {
        wr_error_set(error, WEIR_ERR_CONFIG, "%s: %s", path, wr_error_of_system(errno));
        return NULL;
    }
    struct wr_document *document = NULL;
    size_t size, length;
    char *text = check_file(fd, path, &size, error) ? read_all(fd, path, size, &length, error) : NULL;
    close(fd);
    if (text)
        document = wr_document_parse(path, text, length, error);
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

const char *wr_node_type_name(enum wr_node_type type)
{
    static const char *const names[] = {"null",     "true or false", "a number",
                                        "a string", "an array",      "an object"};
    return names[type];
}

/* However long a key is, there must be room left for what is said of it. */
static void put_key(struct wr_buffer *out, const char *key)
{
    enum { SHOWN = 80 };
    size_t length = strlen(key), shown = length;
    if (length > SHOWN)
        for (shown = SHOWN; ((unsigned char)key[shown] & 0xc0) == 0x80;)
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
        wr_buffer_put_format(out, "[%zu]", node->place);
        return;
    }
    if (out->length)
        wr_buffer_put_char(out, '.');
    put_key(out, node->key);
}

static int set_error(const struct wr_node *node, size_t offset, struct wr_error *error, const char *format,
                     va_list arguments)
{
    const struct wr_document *document = node->document;
    unsigned line, column;
    wr_scan_locate(document->text, document->length, offset, &line, &column);
    struct wr_buffer place = {0};
    put_place(&place, node);
    wr_buffer_put_text(&place, place.length ? ": " : "");
    char words[WR_ERROR_ROOM];
    vsnprintf(words, sizeof words, format, arguments);
    const char *text = wr_buffer_text(&place);
    wr_error_set(error, WEIR_ERR_CONFIG, "%s:%u:%u: %s%s", document->name, line, column, text ? text : "",
                 words);
    wr_buffer_fini(&place);
    return WEIR_ERR_CONFIG;
}

int wr_node_error(const struct wr_node *node, struct wr_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int code = set_error(node, node->offset, error, format, arguments);
    va_end(arguments);
    return code;
}

int wr_node_key_error(const struct wr_node *node, struct wr_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int code = set_error(node, node->key_offset, error, format, arguments);
    va_end(arguments);
    return code;
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
    wr_node_error(node, error, "%s is not %s", wr_node_show(node, shown, sizeof shown),
                  wr_node_type_name(type));
    return false;
}
