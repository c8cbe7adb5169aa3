/* scan: a configuration's text, read: JSON with comments of both kinds that C has.
 *
 * It is strict: refused are duplicate keys, trailing commas and text, control characters in strings, \u0000,
 * half surrogate pairs, numbers as JSON does not write them, invalid UTF-8, a byte order mark, nesting that is
 * too deep. Numbers stay as they are written: what they may be is for whoever knows the option. */
#ifndef WR_SCAN_H
#define WR_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "text/region.h"

enum { WR_SCAN_DEEPEST = 32, WR_SCAN_LONGEST = 16 * 1024 * 1024, WR_SCAN_MOST = 1000000 };

enum wr_node_type { WR_NODE_NULL, WR_NODE_BOOL, WR_NODE_NUMBER, WR_NODE_STRING, WR_NODE_ARRAY, WR_NODE_OBJECT };

struct wr_scan_value {
    enum wr_node_type type;
    bool truth;        /* of a bool */
    size_t parent;     /* the number of the value that it is in; the first one's is its own */
    size_t offset;     /* where it stands */
    size_t key_offset; /* where its key does; its own for what has none */
    const char *key;   /* in an object; else NULL */
    const char *text;  /* of a string; of a number as it is written; else NULL */
};

struct wr_scan {
    struct wr_scan_value *values; /* in the order in which they begin */
    size_t count, room;
    struct wr_region keep; /* keys and texts */
    /* when it fails */
    const char *problem; /* static; NULL: no memory */
    size_t offset;
    char detail[300]; /* what goes behind the problem, or "" */
};

/* Scans a text; false when something is wrong. Call wr_scan_fini in any case. */
bool wr_scan_run(struct wr_scan *scan, const char *text, size_t length);
void wr_scan_fini(struct wr_scan *scan);

/* Line and column (in characters) of an offset, both from 1. */
void wr_scan_locate(const char *text, size_t length, size_t offset, unsigned *line, unsigned *column);

#endif
