/* sketch_code: sketches as bytes, for files and for other processes.
 *
 * Version 1: the byte 1; a byte of flags; how many values or bins there are; unless that is 0, what they are.
 *
 * Of a sketch that has the values themselves (bit 1 of the flags): sum and compensation; then for each value,
 * in ascending order, itself and its count. Of one of bins (bit 0: collapsed): min, max, sum and compensation;
 * then for each bin the distance of its key from the previous one (the first: from the lowest possible key) and
 * its count. An empty one has no flags.
 *
 * Values, min, max, sum and compensation are doubles of 8 bytes, little-endian; numbers are unsigned LEB128, in
 * their shortest form, so equal sketches have equal bytes. Earlier versions of this library made bins of few
 * values, too; they are read as such. */
#ifndef WR_SKETCH_CODE_H
#define WR_SKETCH_CODE_H

#include <stdbool.h>
#include <stddef.h>

#include "summary/sketch.h"

struct wr_buffer;
struct wr_error;

/* The most bytes of a sketch, which has bins: distances of keys have up to 3 bytes, counts up to 10. */
enum { WR_SKETCH_CODE_MAX = 4 + 4 * 8 + WR_SKETCH_BINS * 13 };

/* Appends the bytes. If out of memory, the buffer's `failed` is set. */
void wr_sketch_encode(const struct wr_sketch *sketch, struct wr_buffer *out);

/* Reads exactly `length` bytes into a sketch that is all zeros, but for its slab. Whatever the bytes are, a
 * sketch that is read is one that adding values can make, except that its sum may be any. Returns false with
 * the error set if they are not one, or if out of memory; the sketch is empty then. */
bool wr_sketch_decode(struct wr_sketch *sketch, const void *bytes, size_t length, struct wr_error *error);

#endif
