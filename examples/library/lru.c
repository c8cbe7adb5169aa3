/* How a library measures itself without forcing anything on its host:
 *
 * - It only adds. It does not configure, flush or shut down: that is the host's affair, or nobody's. Without a
 *   configuration nothing is printed or written, no thread is started, and a value costs a few nanoseconds.
 * - Its group is its own name, so the host can route, or silence, all of it by one word: "lru".
 * - What tells its instances apart are labels, not groups or names.
 * - It ignores what adding answers: measuring must never change what the library does.
 * - It links with weir as with any other library; the host need not. */

#include "lru.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

enum { KEY_ROOM = 32 };

struct entry {
    char key[KEY_ROOM];
    long value;
    unsigned long used; /* when, in calls; 0: free */
};

struct lru {
    weir_stream *stream;
    weir_metric *hit, *miss, *evicted; /* looked up once: these are added for each call */
    size_t room;
    unsigned long calls;
    struct entry entries[];
};

struct lru *lru_new(const char *name, size_t room)
{
    struct lru *lru = calloc(1, sizeof *lru + room * sizeof lru->entries[0]);
    if (!lru)
        return NULL;
    const weir_label labels[] = {{"cache", name}};
    lru->room = room;
    lru->stream = weir_get_stream_labeled("lru", labels, 1);
    lru->hit = weir_get_metric(lru->stream, "hit");
    lru->miss = weir_get_metric(lru->stream, "miss");
    lru->evicted = weir_get_metric(lru->stream, "evicted");
    weir_describe(lru->stream, "evicted", "calls", "for how long nobody had asked for what had to go");
    return lru;
}

/* What is costly to find out is only found out if somebody listens. */
static void measure_fill(struct lru *lru)
{
    size_t used = 0;
    if (!weir_stream_enabled(lru->stream))
        return;
    for (size_t i = 0; i < lru->room; i++)
        used += lru->entries[i].used != 0;
    weir_add_int(lru->stream, "fill", (int64_t)used);
}

void lru_free(struct lru *lru)
{
    if (lru)
        measure_fill(lru);
    free(lru); /* streams and metrics belong to weir, and are not freed */
}

static struct entry *find(struct lru *lru, const char *key)
{
    for (size_t i = 0; i < lru->room; i++)
        if (lru->entries[i].used && strncmp(lru->entries[i].key, key, KEY_ROOM - 1) == 0)
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
    for (size_t i = 1; i < lru->room; i++)
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
