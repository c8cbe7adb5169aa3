/* sketch_code: sketches as bytes, for files and for other processes.
 *
 * Version 1: the byte 1; a byte of flags (bit 0: collapsed); the number of bins; unless that is 0: min, max,
 * sum and compensation as 8 bytes each, little-endian; then for each bin the distance of its key from the
 * previous one (the first: from the lowest possible key) and its count. Numbers are unsigned LEB128, in their
 * shortest form, so equal sketches have equal bytes. */
#ifndef WR_SKETCH_CODE_H
#define WR_SKETCH_CODE_H

#include <stdbool.h>
#include <stddef.h>

#include "summary/sketch.h"

struct wr_buffer;
struct wr_error;

/* The most bytes of a sketch: distances of keys have up to 3 bytes, counts up to 10. */
enum { WR_SKETCH_CODE_MAX = 4 + 4 * 8 + WR_SKETCH_BINS * 13 };

/* Appends the bytes. If out of memory, the buffer's `failed` is set. */
void wr_sketch_encode(const struct wr_sketch *sketch, struct wr_buffer *out);

/* Reads exactly `length` bytes into a sketch that is all zeros. Whatever the bytes are, a sketch that is read
 * is one that adding values can make, except that its sum may be any. Returns false with the error set if they
 * are not one, or if out of memory; the sketch is empty then. */
bool wr_sketch_decode(struct wr_sketch *sketch, const void *bytes, size_t length, struct wr_error *error);

#endif
