/* cache_l2: where a thread keeps the names for which its cache has no place. It goes by the name's address too,
 * and then compares the text with the series' own name, which lies where the call has to look anyway.
 *
 * Its pages are part of the producer's and are touched from the first name on that is put in, so that threads
 * with few names pay nothing for it. It begins small, and grows when many names find no place.
 *
 * An entry's two halves need not belong together, as when a signal handler comes between the two stores: the
 * text is what decides. */
#ifndef WR_NAME_CACHE_L2_H
#define WR_NAME_CACHE_L2_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "text/common.h"
#include "registry/registry.h"

enum {
    WR_NAME_CACHE_L2_WAYS = 4, /* entries that a name may be in: one line of the processor's cache */
    WR_NAME_CACHE_L2_SMALLEST = 4096,
    WR_NAME_CACHE_L2_LARGEST = 32768,
    WR_NAME_CACHE_L2_GROWTH = 8,
    WR_NAME_CACHE_L2_PATIENCE = 8,
};

struct wr_name_cache_l2_entry {
    const char *name;
    struct weir_metric *metric; /* NULL: empty */
};

/* All zeros: keeps nothing. One thread's alone, and its signal handlers'. */
struct wr_name_cache_l2 {
    struct wr_name_cache_l2_entry *entries; /* WR_NAME_CACHE_L2_LARGEST of them; NULL: there is no room */
    uint32_t used;                          /* entries that names are put in; 0: none has been yet */
    uint32_t declined;                      /* names that found all their entries taken, since it grew */
};

enum { WR_NAME_CACHE_L2_BYTES = WR_NAME_CACHE_L2_LARGEST * sizeof(struct wr_name_cache_l2_entry) };

/* The first of the entries that a name may be in, once there are any. Neighbours in memory stay neighbours:
 * what goes through its names in order goes through the cache_l2 in order, and the processor fetches ahead.
 * Regions as large as the cache_l2, and texts that begin in the middle of 16 bytes, have each a place of their
 * own to begin. */
static inline struct wr_name_cache_l2_entry *wr_name_cache_l2_set(const struct wr_name_cache_l2 *cache_l2,
                                                                  const struct weir_stream *stream,
                                                                  const char *name)
{
    uint64_t at = (uintptr_t)name;
    uint64_t region = (at >> 19 << 1 | (at >> 3 & 1)) ^ (uint64_t)(uintptr_t)stream << 20;
    uint64_t base = region * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    return cache_l2->entries +
           ((base + (at >> 6)) * WR_NAME_CACHE_L2_WAYS & (cache_l2->used - WR_NAME_CACHE_L2_WAYS));
}

/* The series of a stream's name; NULL: it is not here. Which of the entries has the address is as good as
 * random, so no branch depends on it; if two have, one of them is looked at. */
static inline struct weir_metric *wr_name_cache_l2_find(const struct wr_name_cache_l2 *cache_l2,
                                                        const struct weir_stream *stream, const char *name)
{
    if (!cache_l2->used)
        return NULL;
    const struct wr_name_cache_l2_entry *set = wr_name_cache_l2_set(cache_l2, stream, name);
    struct weir_metric *metric = NULL;
    for (size_t i = 0; i < WR_NAME_CACHE_L2_WAYS; i++)
        metric = set[i].name == name ? set[i].metric : metric;
    bool found = metric && metric->stream == stream && strcmp(metric->name, name) == 0;
    return WR_LIKELY(found) ? metric : NULL;
}

/* Keeps the series of a name, if there is room at all. */
void wr_name_cache_l2_put(struct wr_name_cache_l2 *cache_l2, struct weir_metric *metric, const char *name);

#endif
