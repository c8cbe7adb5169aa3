/* name_cache_l2: the second level of a thread's name cache, for names whose entry in the first level is in use.
 * The key is the name's address, too; then the text is compared with the series' own name, which is in memory
 * that the call reads anyway.
 *
 * Its pages belong to the producer's mapping and are first touched when a name is stored, so threads with few
 * names pay nothing for it. It begins small, and grows when many names find no free entry.
 *
 * The two fields of an entry may be of different names, if a signal handler ran between the two stores: the
 * comparison of the text decides. */
#ifndef WR_NAME_CACHE_L2_H
#define WR_NAME_CACHE_L2_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "text/common.h"
#include "registry/registry.h"

enum {
    WR_NAME_CACHE_L2_WAYS = 4, /* entries that a name may be in: one cache line */
    WR_NAME_CACHE_L2_SMALLEST = 4096,
    WR_NAME_CACHE_L2_LARGEST = 32768,
    WR_NAME_CACHE_L2_GROWTH = 8,
    WR_NAME_CACHE_L2_PATIENCE = 8,
};

struct wr_name_cache_l2_entry {
    const char *name;
    struct weir_metric *metric; /* NULL: empty */
};

/* All zeros: stores nothing. Used by one thread and its signal handlers. */
struct wr_name_cache_l2 {
    struct wr_name_cache_l2_entry *entries; /* WR_NAME_CACHE_L2_LARGEST of them; NULL: none */
    uint32_t used;                          /* entries in use by the hash; 0: no name was stored yet */
    uint32_t declined;                      /* names that found all their entries in use, since it grew */
};

enum { WR_NAME_CACHE_L2_BYTES = WR_NAME_CACHE_L2_LARGEST * sizeof(struct wr_name_cache_l2_entry) };

/* The first of the entries that a name may be in; `used` must not be 0. Names that are neighbours in memory
 * have neighbouring entries, so a program that adds its names in order reads the entries in order, and the
 * processor prefetches them. Each region of 512 KiB, and each half of 16 bytes, begins at an offset of its own.
 */
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

/* The series of a stream's name; NULL: it is not stored. Which entry has the address is unpredictable, so the
 * loop has no branch; if two entries have it, the last one is used. */
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

/* Stores the series of a name, if there are entries. */
void wr_name_cache_l2_put(struct wr_name_cache_l2 *cache_l2, struct weir_metric *metric, const char *name);

#endif
