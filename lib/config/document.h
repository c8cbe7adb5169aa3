/* document: a configuration text that was read: a tree of values with their places in the text. */
#ifndef WR_DOCUMENT_H
#define WR_DOCUMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/region.h"
#include "text/json.h"

struct wr_error;

struct wr_node {
    enum wr_node_type type;
    const struct wr_document *document;
    const struct wr_node *parent;
    const struct wr_node *first, *next; /* first member; next member of the same parent */
    const char *key;                    /* in an object; else NULL */
    size_t index;                       /* among its parent's members, from 0 */
    const char *text;                   /* of a string; of a number: as written */
    bool truth;                         /* of a bool */
    size_t offset, key_offset;          /* in the document's text */
    size_t end;                         /* of an array or object: the offset behind it */
};

/* Immutable and reference-counted: any thread may read it. */
struct wr_document {
    _Atomic unsigned references;
    const char *name; /* in messages: the path, or the origin of the text */
    const char *path; /* as it was opened; NULL: not from a file */
    const char *text;
    size_t length;
    size_t value_count;
    uint32_t number; /* among the documents of its configuration; UINT32_MAX: not known yet */
    const struct wr_node *root;
    struct wr_region keep;
    _Atomic bool logged; /* warnings about it were logged */
};

/* Reads a text. `name` precedes line and column in errors. Returns one reference. NULL: error is set. */
struct wr_document *wr_document_read_text(const char *name, const char *text, size_t length,
                                          struct wr_error *error);

/* Reads a file: a regular one that nobody else may write or replace, see file_perms. */
struct wr_document *wr_document_read(const char *path, struct wr_error *error);

/* The same in two steps: the text of such a file, which the caller frees; then its document. */
char *wr_document_load(const char *path, size_t *length, struct wr_error *error);
struct wr_document *wr_document_read_loaded(const char *path, const char *text, size_t length,
                                            struct wr_error *error);

void wr_document_hold(struct wr_document *document);
void wr_document_drop(struct wr_document *document);

/* A member of an object by its key, or NULL. object may be NULL. */
const struct wr_node *wr_node_member(const struct wr_node *object, const char *key);

/* The number of members of an object, or of items of an array. */
size_t wr_node_count(const struct wr_node *node);

/* A type's name in messages: "a string", "an object". */
const char *wr_node_type_name(enum wr_node_type type);

/* Sets the error to "NAME:LINE:COLUMN: PLACE: ...", at the value. Returns false, for callers that return
 * success. */
bool wr_node_error(const struct wr_node *node, struct wr_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same of a problem that has no place yet. One of memory stays without a place, and keeps its code. */
bool wr_node_problem(const struct wr_node *node, const struct wr_error *problem, struct wr_error *error);

/* wr_node_error at the value's key. */
bool wr_node_key_error(const struct wr_node *node, struct wr_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Room for a place whose path is not cut. */
enum { WR_NODE_PLACE_ROOM = 4096 + 32 };

/* Writes "NAME:LINE:COLUMN" of the value's key. Returns out. */
const char *wr_node_show_place(const struct wr_node *node, char *out, size_t room);

/* Formats a value for messages, truncated if long. Returns out. */
const char *wr_node_show(const struct wr_node *node, char *out, size_t room);

/* false: the value is of another type; error is set. */
bool wr_node_check_type(const struct wr_node *node, enum wr_node_type type, struct wr_error *error);

#endif
