/* chunk: points of one series, packed. The points are in the order of their times; those with equal times keep
 * the order in which they were added.
 *
 *     byte        version, 1
 *     byte        what the values are: CHUNK_DOUBLES or CHUNK_INTS
 *     varint      count
 *     varint      the unit of the times in ns: what all their differences are multiples of
 *     8 bytes     the first time in ns, little endian
 *     count - 1 x varint: the difference to the previous time, in units
 *     count x     a double: its bits XOR the previous ones (at first 0): a byte with the number of leading zero
 *                 bytes in the high half and of trailing zero bytes in the low half (0x80: all are zero), then
 *                 the bytes between, the highest first
 *                 an int: the difference to the previous one (at first 0), zigzag, varint
 *
 * A varint has seven bits in a byte, the lowest first; all bytes but the last one have the high bit. */
#ifndef WEIR_PLUGINS_STORE_CHUNK_H
#define WEIR_PLUGINS_STORE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHUNK_POINTS = 4096, CHUNK_BYTES_MOST = 32 + CHUNK_POINTS * 20 };

enum { CHUNK_DOUBLES = 0, CHUNK_INTS = 1 };

struct chunk_point {
    int64_t time_ns;
    bool is_int;
    union {
        double f64; /* may be NaN or infinite */
        int64_t i64;
    } value;
};

/* What is known of a chunk's values without unpacking it. */
struct chunk_totals {
    uint64_t count, finite;
    double sum, min, max; /* of the finite ones; NaN: there are none */
    double first, last;   /* the first and the last finite one; NaN: there is none */
    double rise;          /* of a running total from the first to the last: see chunk_rise */
};

/* The value as a double. */
double chunk_value(const struct chunk_point *point);

/* What a running total has counted between two of its values: their difference or, if it has fallen, what it
 * has counted since it started anew. */
double chunk_rise(double earlier, double later);

/* Adds a value. All zeros but min, max, first and last, which are NaN: nothing was added. */
void chunk_count(struct chunk_totals *totals, double value);

/* How many of these points, from the first, one chunk can hold: at most CHUNK_POINTS, and ints together with
 * doubles only if a double can have them exactly. */
size_t chunk_fit(const struct chunk_point *points, size_t count);

/* Packs points that chunk_fit allows into `bytes`, of at least CHUNK_BYTES_MOST. Returns how many bytes. */
size_t chunk_pack(const struct chunk_point *points, size_t count, uint8_t *bytes);

/* Unpacks into `points`, of CHUNK_POINTS. Returns their number; 0: the bytes are no chunk. */
size_t chunk_unpack(const uint8_t *bytes, size_t length, struct chunk_point *points);

#endif
