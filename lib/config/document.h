/* document: a configuration's text as a tree of values that know where they stand. */
#ifndef WR_DOCUMENT_H
#define WR_DOCUMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "text/region.h"
#include "text/scan.h"

struct wr_error;

struct wr_node {
    enum wr_node_type type;
    const struct wr_document *document;
    const struct wr_node *parent;
    const struct wr_node *first, *next; /* the first member; the next one of the same parent */
    const char *key;                    /* in an object; else NULL */
    size_t place;                       /* in an array, from 0 */
    const char *text;                   /* of a string; of a number as it is written */
    bool truth;                         /* of a bool */
    size_t offset, key_offset;          /* in the document's text */
};

/* Immutable once made, so any thread may read it. */
struct wr_document {
    _Atomic unsigned references;
    const char *name; /* for messages: a path, or where the text came from */
    const char *text;
    size_t length;
    const struct wr_node *root;
    struct wr_region keep;
};

/* Parses a text; with one reference; NULL: the error tells place and reason. */
struct wr_document *wr_document_parse(const char *name, const char *text, size_t length,
                                      struct wr_error *error);

/* Reads and parses a file: a regular one that nobody but its owner and his group may write. */
struct wr_document *wr_document_read(const char *path, struct wr_error *error);

void wr_document_hold(struct wr_document *document);
void wr_document_drop(struct wr_document *document);

/* A member of an object by its key; NULL: it has none. */
const struct wr_node *wr_node_member(const struct wr_node *object, const char *key);

/* What a type is called: "a string", "an object". */
const char *wr_node_type_name(enum wr_node_type type);

/* Sets the error to "NAME:LINE:COLUMN: PLACE: ..." for a value, and answers WEIR_ERR_CONFIG. */
int wr_node_error(const struct wr_node *node, struct wr_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same at the value's key. */
int wr_node_key_error(const struct wr_node *node, struct wr_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The value as it stands in the document, cut when it is long; for messages. Answers out. */
const char *wr_node_show(const struct wr_node *node, char *out, size_t room);

/* false: the value is of another type, and the error says so. */
bool wr_node_check_type(const struct wr_node *node, enum wr_node_type type, struct wr_error *error);

#endif
