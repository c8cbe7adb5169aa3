/* sketch_internal: the numbers of bins, for this folder and its tests. */
#ifndef WR_SKETCH_INTERNAL_H
#define WR_SKETCH_INTERNAL_H

#include <stdint.h>

/* Keys of bins ascend with the values in them: 0 holds zero, -k the negated values of k. */
enum { WR_SKETCH_KEY_MAX = 77000 };

/* Returns the key of a finite value's bin. */
int32_t wr_sketch_key(double value);

/* Returns the representative value of a bin: none in it differs from it by more than 1 %. */
double wr_sketch_value(int32_t key);

#endif
