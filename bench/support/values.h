/* values: what all measured programs write, and what the check of their files expects. */
#ifndef BENCH_VALUES_H
#define BENCH_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { VALUES = 10000 }; /* programs go through them again and again */

/* Fills a table of VALUES different numbers in no order that one could guess.
 *
 * Either from 0.001 to 99.999, with three decimals of which the last is never 0, so that "%.3f" and the
 * shortest digits give the same text; or, random, numbers below 100 that need 17 digits, nearly all of them. */
void values_fill(double *table, bool random);

#ifdef __cplusplus
}
#endif

#endif
