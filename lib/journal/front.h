/* front: which numbers of an origin were taken, so that what its sender sends again is recognised.
 *
 * Numbers may have gaps, and may arrive out of order: an origin has up to four ranges of numbers. If there are
 * more, the one that was not extended for longest is forgotten: a repeat is then possible, but a number that
 * was not taken is never treated as taken. */
#ifndef WR_FRONT_H
#define WR_FRONT_H

#include <stdbool.h>
#include <stdint.h>

enum { WR_FRONT_RANGES = 4 };

/* The numbers from `from` to `to` - 1. */
struct wr_front_range {
    uint64_t from, to;
};

/* Disjoint ranges that are not adjacent, the one that was extended last at the end. All zeros: none. */
struct wr_front {
    struct wr_front_range ranges[WR_FRONT_RANGES];
    uint32_t count;
    uint32_t reserved; /* 0 */
};

/* An origin: 128 bits. */
struct wr_front_origin {
    uint64_t words[2];
};

/* Adds numbers; from < to. */
void wr_front_add(struct wr_front *front, uint64_t from, uint64_t to);

/* Finds the lowest number from `first` to `end` - 1 that was not taken, and the end of those from there that
 * were not. Returns false if all were taken. */
bool wr_front_missing(const struct wr_front *front, uint64_t first, uint64_t end, uint64_t *missing,
                      uint64_t *missing_end);

/* Reads 32 lowercase hexadecimal digits. Returns false if it is something else. */
bool wr_front_read(const char *text, struct wr_front_origin *origin);

#endif
