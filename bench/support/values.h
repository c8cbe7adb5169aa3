/* values: the values that all measured programs write and that verify expects. */
#ifndef BENCH_VALUES_H
#define BENCH_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The upper bounds of histograms of them. */
#define VALUES_BOUNDS                                                                                          \
    {                                                                                                          \
        1, 2, 5, 10, 15, 20, 30, 40, 50, 60, 70, 80, 95                                                        \
    }

enum { VALUES = 10000 }; /* programs cycle through them */

/* Fills a table with VALUES different numbers in a shuffled order.
 *
 * The numbers are from 0.001 to 99.999, with three decimals of which the last is never 0, so that "%.3f" and
 * the shortest digits give the same text. If random, they are below 100, and nearly all need 17 digits. */
void values_fill(double *table, bool random);

#ifdef __cplusplus
}
#endif

#endif
