#include "document.h"

#include <errno.h>
#include <fcntl.h>
#include <json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buffer.h"
#include "error.h"
#include "scan.h"
#include "trust.h"
#include "utf8.h"

/* ---- From json-c's tree to ours -------------------------------------------------------------- */

/* Both trees and the scanner's list of places have the values in the same order. */
struct builder {
    struct wr_document *document;
    const struct wr_scan_place *places;
    size_t next;
    bool failed;
};

static struct wr_node *build(struct builder *b, struct json_object *value, const struct wr_node *parent,
                             const char *key, size_t place);

static enum wr_node_type type_of(struct json_object *value)
{
    switch (json_object_get_type(value)) {
    case json_type_boolean: return WR_NODE_BOOL;
    case json_type_double:
    case json_type_int: return WR_NODE_NUMBER;
    case json_type_string: return WR_NODE_STRING;
    case json_type_array: return WR_NODE_ARRAY;
    case json_type_object: return WR_NODE_OBJECT;
    default: return WR_NODE_NULL;
    }
}

static void append(struct wr_node *parent, struct wr_node **last, struct wr_node *child)
{
    if (!child)
        return;
    if (*last)
        (*last)->next = child;
    else
        parent->first = child;
    *last = child;
}

static void build_object(struct builder *b, struct wr_node *node, struct json_object *value)
{
    struct wr_node *last = NULL;
    struct json_object_iterator at = json_object_iter_begin(value), end = json_object_iter_end(value);
    for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at))
        append(node, &last,
               build(b, json_object_iter_peek_value(&at), node, json_object_iter_peek_name(&at), 0));
}

static void build_array(struct builder *b, struct wr_node *node, struct json_object *value)
{
    struct wr_node *last = NULL;
    for (size_t i = 0; i < json_object_array_length(value); i++)
        append(node, &last, build(b, json_object_array_get_idx(value, i), node, NULL, i));
}

static void set_value(struct builder *b, struct wr_node *node, struct json_object *value,
                      const struct wr_scan_place *place)
{
    struct wr_keep *keep = &b->document->keep;
    switch (node->type) {
    case WR_NODE_BOOL: node->truth = json_object_get_boolean(value); return;
    case WR_NODE_NUMBER: /* as written: json-c rounds integers to 64 bits and reads decimals by the locale */
        node->text = wr_keep_text(keep, b->document->text + place->offset, place->length);
        break;
    case WR_NODE_STRING:
        node->text =
            wr_keep_text(keep, json_object_get_string(value), (size_t)json_object_get_string_len(value));
        break;
    case WR_NODE_ARRAY: build_array(b, node, value); return;
    case WR_NODE_OBJECT: build_object(b, node, value); return;
    case WR_NODE_NULL: return;
    }
    b->failed |= !node->text;
}

static struct wr_node *build(struct builder *b, struct json_object *value, const struct wr_node *parent,
                             const char *key, size_t place)
{
    struct wr_keep *keep = &b->document->keep;
    struct wr_node *node = wr_keep_get(keep, sizeof *node);
    if (!node) {
        b->failed = true;
        return NULL;
    }
    const struct wr_scan_place *at = &b->places[b->next++];
    node->type = type_of(value);
    node->document = b->document;
    node->parent = parent;
    node->place = place;
    node->offset = at->offset;
    node->key_offset = at->key_offset;
    if (key) {
        node->key = wr_keep_text(keep, key, strlen(key));
        b->failed |= !node->key;
    }
    set_value(b, node, value, at);
    return node;
}

/* ---- Parsing --------------------------------------------------------------------------------- */

static void fail_scan(const struct wr_scan *scan, const char *name, const char *text, struct wr_error *error)
{
    if (!scan->problem) {
        wr_error_set(error, WEIR_ERR_MEMORY, "%s: no memory", name);
        return;
    }
    unsigned line, column;
    wr_scan_locate(text, scan->length, scan->offset, &line, &column);
    wr_error_set(error, WEIR_ERR_CONFIG, "%s:%u:%u: %s%s%s", name, line, column, scan->problem,
                 scan->detail[0] ? ": " : "", scan->detail);
}

/* json-c does not look whether it got memory for a key, and would fall. So it is asked beforehand whether there
 * is as much as it can need; that is free again at once, and the next to be given out. */
static bool has_memory_for(const struct wr_scan *scan)
{
    enum { BYTES_A_VALUE = 1024 };
    void *volatile probe = malloc(2 * scan->length + scan->count * BYTES_A_VALUE);
    bool has = probe;
    free(probe);
    return has;
}

static struct json_object *run_json_c(const struct wr_scan *scan, const char *name, struct wr_error *error)
{
    struct json_tokener *tokener = has_memory_for(scan) ? json_tokener_new_ex(WR_SCAN_DEEPEST + 2) : NULL;
    if (!tokener) {
        wr_error_set(error, WEIR_ERR_MEMORY, "%s: no memory", name);
        return NULL;
    }
    /* Not strict, since the scanner was: strictness here differs between versions of json-c, of which some
     * refuse numbers beyond 64 bits before anybody can say which option they are for.
     *
     * With its NUL: a number at the very end is only known to be over then */
    struct json_object *root = json_tokener_parse_ex(tokener, scan->text, (int)scan->length + 1);
    enum json_tokener_error problem = json_tokener_get_error(tokener);
    if (problem != json_tokener_success) {
        unsigned line, column;
        wr_scan_locate(scan->text, scan->length, json_tokener_get_parse_end(tokener), &line, &column);
        wr_error_set(error, WEIR_ERR_CONFIG, "%s:%u:%u: %s", name, line, column,
                     json_tokener_error_desc(problem));
    }
    json_tokener_free(tokener);
    return problem == json_tokener_success ? root : NULL;
}

static struct wr_document *new_document(const char *name, struct wr_scan *scan)
{
    struct wr_document *document = calloc(1, sizeof *document);
    if (!document)
        return NULL;
    document->name = wr_keep_text(&document->keep, name, strlen(name));
    if (!document->name) {
        free(document);
        return NULL;
    }
    atomic_store_explicit(&document->references, 1, memory_order_relaxed);
    document->text = scan->text;
    document->length = scan->length;
    scan->text = NULL;
    return document;
}

static struct wr_document *make_document(const char *name, struct wr_scan *scan, struct json_object *root,
                                         struct wr_error *error)
{
    struct wr_document *document = new_document(name, scan);
    struct builder builder = {.document = document, .places = scan->places};
    if (document)
        document->root = build(&builder, root, NULL, NULL, 0);
    if (document && !builder.failed)
        return document;
    wr_document_drop(document);
    wr_error_set(error, WEIR_ERR_MEMORY, "%s: no memory", name);
    return NULL;
}

struct wr_document *wr_document_parse(const char *name, const char *text, size_t length, struct wr_error *error)
{
    struct wr_document *document = NULL;
    struct wr_scan scan;
    if (!wr_scan_run(&scan, text, length)) {
        fail_scan(&scan, name, text, error);
    } else {
        struct wr_error failure = {0};
        struct json_object *root = run_json_c(&scan, name, &failure);
        memcpy(scan.text, text, length); /* with its comments again: columns count their characters too */
        if (failure.code)
            wr_error_set(error, failure.code, "%s", failure.text);
        else
            document = make_document(name, &scan, root, error);
        json_object_put(root);
    }
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
    return wr_trust_check_status(path, &status, WEIR_ERR_CONFIG, error);
}

/* Reads what is there, up to the size that was found; a file that shrinks meanwhile is read as it is. */
static char *read_all(int fd, const char *path, size_t size, size_t *length, struct wr_error *error)
{
    char *text = malloc(size + 1);
    if (!text) {
        wr_error_set(error, WEIR_ERR_MEMORY, "%s: no memory", path);
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
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
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
    wr_keep_fini(&document->keep);
    free(document->text);
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
