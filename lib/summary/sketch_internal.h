/* sketch_internal: the numbers of bins, and what is in a sketch, for this folder and its tests. */
#ifndef WR_SKETCH_INTERNAL_H
#define WR_SKETCH_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "summary/sketch.h"

struct wr_sketch;

/* Keys of bins ascend with the values in them: 0 holds zero, -k the negated values of k. */
enum { WR_SKETCH_KEY_MAX = 77000 };

/* How many keys take the room of a value. */
enum { WR_SKETCH_KEYS_OF_VALUE = sizeof(double) / sizeof(int32_t) };

/* Returns the key of a finite value's bin. */
int32_t wr_sketch_key(double value);

/* Makes room for keys and counts. Returns false if out of memory. */
bool wr_sketch_reserve(struct wr_sketch *sketch, uint32_t keys, uint32_t counts);

/* Returns the representative value of a bin: none in it differs from it by more than 1 %. */
double wr_sketch_value(int32_t key);

/* Returns the key of a sketch's bin, or of the bin that its value would be in; entry: below `entries`. */
int32_t wr_sketch_key_at(const struct wr_sketch *sketch, uint32_t entry);

/* Returns a sketch's value, or the representative one of its bin: never outside the smallest and largest. */
double wr_sketch_value_at(const struct wr_sketch *sketch, uint32_t entry);

#endif
