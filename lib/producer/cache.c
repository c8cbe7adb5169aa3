#include "producer/cache.h"

#include <stdatomic.h>

/* A signal handler that adds by name may run between any two lines: it finds the entry empty and the cache
 * closed, so it neither reads nor writes a half-written entry. */
void wr_cache_put(struct wr_cache *cache, struct wr_cache_entry *entry, struct weir_metric *metric,
                  const char *name)
{
    enum { ROOM = WR_CACHE_WORDS * sizeof(uint64_t) };
    size_t offset = (uintptr_t)name & 7, size = strlen(metric->name) + 1;
    size_t compared = size < ROOM - offset ? size : ROOM - offset;
    cache->open = false;
    entry->metric = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    memset(entry->words, 0, ROOM);
    memset(entry->masks, 0, ROOM);
    memcpy((char *)entry->words + offset, metric->name, compared);
    memset((char *)entry->masks + offset, 0xff, compared);
    entry->compared = compared < size ? compared : 0;
    atomic_signal_fence(memory_order_seq_cst);
    entry->metric = metric;
    atomic_signal_fence(memory_order_seq_cst);
    cache->open = true;
}
