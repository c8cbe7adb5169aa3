#include "producer/name_cache_l2.h"

/* The entry to store a name in: one with the same address, or an empty one. If all are in use: each
 * WR_NAME_CACHE_L2_PATIENCEth time the next one in turn, else NULL, so that with more names than entries most
 * entries stay. */
static struct wr_name_cache_l2_entry *choose(struct wr_name_cache_l2 *cache_l2,
                                             const struct weir_stream *stream, const char *name)
{
    struct wr_name_cache_l2_entry *set = wr_name_cache_l2_set(cache_l2, stream, name);
    for (size_t i = 0; i < WR_NAME_CACHE_L2_WAYS; i++)
        if (!set[i].metric || (set[i].name == name && set[i].metric->stream == stream))
            return &set[i];
    uint32_t declined = cache_l2->declined++;
    return declined % WR_NAME_CACHE_L2_PATIENCE
               ? NULL
               : &set[declined / WR_NAME_CACHE_L2_PATIENCE % WR_NAME_CACHE_L2_WAYS];
}

/* Clears it: most entries would be in the wrong place, and their names are found again in the registry. */
static void grow(struct wr_name_cache_l2 *cache_l2)
{
    for (uint32_t i = 0; i < cache_l2->used; i++)
        cache_l2->entries[i] = (struct wr_name_cache_l2_entry){0};
    cache_l2->used = cache_l2->used ? cache_l2->used * WR_NAME_CACHE_L2_GROWTH : WR_NAME_CACHE_L2_SMALLEST;
    cache_l2->declined = 0;
}

void wr_name_cache_l2_put(struct wr_name_cache_l2 *cache_l2, struct weir_metric *metric, const char *name)
{
    if (!cache_l2->entries)
        return;
    if (!cache_l2->used ||
        (cache_l2->declined > cache_l2->used / 4 && cache_l2->used < WR_NAME_CACHE_L2_LARGEST))
        grow(cache_l2);
    struct wr_name_cache_l2_entry *entry = choose(cache_l2, metric->stream, name);
    if (!entry)
        return;
    entry->name = name;
    entry->metric = metric;
}
