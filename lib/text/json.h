/* json: parses JSON with comments (both kinds that C has) into a flat list of values.
 *
 * Strict: rejects duplicate keys unless they are asked for, trailing commas, text after the value, control
 * characters in strings, \u0000, unpaired surrogates, numbers that JSON does not allow, invalid UTF-8, a byte
 * order mark and deep nesting. Numbers are kept as text: their range depends on the option that they are for.
 */
#ifndef WR_JSON_H
#define WR_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/buffer.h"
#include "text/region.h"

enum { WR_JSON_DEPTH_MAX = 32, WR_JSON_BYTES_MAX = 16 * 1024 * 1024, WR_JSON_VALUES_MAX = 1000000 };

enum wr_node_type { WR_NODE_NULL, WR_NODE_BOOL, WR_NODE_NUMBER, WR_NODE_STRING, WR_NODE_ARRAY, WR_NODE_OBJECT };

struct wr_json_value {
    enum wr_node_type type;
    bool truth;        /* of a bool */
    bool is_replaced;  /* its key is given again in its object: see `repeats` */
    size_t parent;     /* index of the object or array that it is a member of; the root's is its own */
    size_t offset;     /* of the value in the text, in bytes */
    size_t end;        /* of an array or object: the offset behind it */
    size_t key_offset; /* of its key; without a key: of the value */
    const char *key;   /* in an object; else NULL */
    const char *text;  /* of a string: unescaped; of a number: as written; else NULL */
};

struct wr_json_key;

/* All keys of a text, to find duplicates: open addressing, at most half full. */
struct wr_json_keys {
    struct wr_json_key *slots;
    size_t count, capacity; /* capacity: 0 or a power of two */
};

/* All zeros: empty. */
struct wr_json {
    /* set by the caller, for what Python writes and reads: */
    bool specials;                /* NaN, Infinity and -Infinity are numbers */
    bool repeats;                 /* an object may have a key several times, of which the last one holds */
    struct wr_json_value *values; /* in the order of their first bytes: a parent precedes its members */
    size_t count;
    uint32_t room;
    struct wr_region keep; /* keys and texts */
    /* set on failure */
    const char *problem; /* static; NULL: out of memory */
    size_t offset;
    char detail[300]; /* appended to the problem, or "" */
    /* of the parser */
    struct wr_json_keys keys;
    struct wr_buffer string;
};

/* Parses a text; json: empty. false: failed, see problem. The caller calls wr_json_fini in both cases, or
 * wr_json_clear if another text follows. */
bool wr_json_read(struct wr_json *json, const char *text, size_t length);
void wr_json_fini(struct wr_json *json);

/* Forgets the text, and keeps memory for the next one. */
void wr_json_clear(struct wr_json *json);

/* Line and column (in characters) of an offset, both from 1. */
void wr_json_locate(const char *text, size_t length, size_t offset, unsigned *line, unsigned *column);

#endif
