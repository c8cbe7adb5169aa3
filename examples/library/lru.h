/* lru: an ordinary library: a cache of a few integers by name. That it measures itself is an implementation
 * detail, which this header does not mention. */
#ifndef LRU_H
#define LRU_H

#include <stddef.h>

struct lru;

/* name distinguishes this cache from others in the program. Returns NULL if out of memory. */
struct lru *lru_new(const char *name, size_t capacity);
void lru_free(struct lru *lru);

/* Returns 1 and sets *value if the key is in the cache, otherwise 0. */
int lru_get(struct lru *lru, const char *key, long *value);
void lru_put(struct lru *lru, const char *key, long value);

#endif
