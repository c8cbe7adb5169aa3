/* scan: the first look at a configuration's text, before json-c sees it.
 *
 * It takes out comments (both kinds that C has) and finds what json-c would let pass or could not place:
 * duplicate keys, \u0000, control characters in strings, trailing commas and text, nesting that is too deep,
 * invalid UTF-8, a byte order mark. */
#ifndef WR_SCAN_H
#define WR_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "keep.h"

enum { WR_SCAN_DEEPEST = 32, WR_SCAN_LONGEST = 16 * 1024 * 1024 };

/* Where a value stands. Values come in the order in which they begin. */
struct wr_scan_place {
    size_t offset, length;
    size_t key_offset; /* of its key; its own for what has none */
};

struct wr_scan {
    char *text; /* the input with blanks for comments, and a NUL behind */
    size_t length;
    struct wr_scan_place *places;
    size_t count, room;
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
