/* How a library measures itself without forcing anything on its host:
 *
 * - It only adds values. It does not configure, flush or shut down weir: only the host may do that. Without a
 *   configuration nothing is printed or written, no thread is started, and a value costs a few nanoseconds.
 * - Its group is its own name, so the host can route or disable all of its values with one name: "lru".
 * - Its instances are distinguished by labels, not by groups or names.
 * - It ignores the return values of weir's functions: measuring must never change what the library does.
 * - It links with weir like with any other library; the host does not have to. */

#include "lru.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

enum { KEY_BYTES = 32 };

struct entry {
    char key[KEY_BYTES];
    long value;
    unsigned long used; /* the call that used it last; 0: free */
};

struct lru {
    weir_stream *stream;
    weir_metric *hit, *miss, *evicted; /* looked up once, because they are added on every call */
    size_t capacity;
    unsigned long calls;
    struct entry entries[];
};

struct lru *lru_new(const char *name, size_t capacity)
{
    struct lru *lru = calloc(1, sizeof *lru + capacity * sizeof lru->entries[0]);
    if (!lru)
        return NULL;
    const weir_label labels[] = {{"cache", name}};
    lru->capacity = capacity;
    lru->stream = weir_get_stream_labeled("lru", labels, 1);
    lru->hit = weir_get_metric(lru->stream, "hit");
    lru->miss = weir_get_metric(lru->stream, "miss");
    lru->evicted = weir_get_metric(lru->stream, "evicted");
    weir_describe(lru->stream, "evicted", "calls", "calls since the last use of an evicted entry");
    return lru;
}

/* This measurement is costly, so it is skipped if the group has no handler. */
static void measure_fill(struct lru *lru)
{
    size_t used = 0;
    if (!weir_stream_enabled(lru->stream))
        return;
    for (size_t i = 0; i < lru->capacity; i++)
        used += lru->entries[i].used != 0;
    weir_add_int(lru->stream, "fill", (int64_t)used);
}

void lru_free(struct lru *lru)
{
    if (lru)
        measure_fill(lru);
    free(lru); /* streams and metrics are owned by weir and are not freed */
}

static struct entry *find(struct lru *lru, const char *key)
{
    for (size_t i = 0; i < lru->capacity; i++)
        if (lru->entries[i].used && strncmp(lru->entries[i].key, key, KEY_BYTES - 1) == 0)
            return &lru->entries[i];
    return NULL;
}

int lru_get(struct lru *lru, const char *key, long *value)
{
    struct entry *entry = find(lru, key);
    lru->calls++;
    weir_metric_add_int(entry ? lru->hit : lru->miss, 1);
    if (!entry)
        return 0;
    entry->used = lru->calls;
    *value = entry->value;
    return 1;
}

static struct entry *find_oldest(struct lru *lru)
{
    struct entry *oldest = lru->entries;
    for (size_t i = 1; i < lru->capacity; i++)
        if (lru->entries[i].used < oldest->used)
            oldest = &lru->entries[i];
    return oldest;
}

void lru_put(struct lru *lru, const char *key, long value)
{
    struct entry *entry = find(lru, key);
    lru->calls++;
    if (!entry) {
        entry = find_oldest(lru);
        if (entry->used)
            weir_metric_add_int(lru->evicted, (int64_t)(lru->calls - entry->used));
        snprintf(entry->key, sizeof entry->key, "%s", key);
    }
    entry->value = value;
    entry->used = lru->calls;
}
