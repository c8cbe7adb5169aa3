/* lru: a library like any other: a cache of a few integers by name. That it measures itself its users need not
 * know: this header does not mention it. */
#ifndef LRU_H
#define LRU_H

#include <stddef.h>

struct lru;

/* name: tells this cache from others of the program. NULL without memory. */
struct lru *lru_new(const char *name, size_t room);
void lru_free(struct lru *lru);

/* 1: *value is what was put under the key; 0: it is not there (any more). */
int lru_get(struct lru *lru, const char *key, long *value);
void lru_put(struct lru *lru, const char *key, long value);

#endif
