#include "annex.h"

/* The entry for a name: the one with another text of its address, or an empty one; where all are taken, one
 * time of WR_ANNEX_PATIENCE the next in turn, else NULL. With more names than places, most stay where they are.
 */
static struct wr_annex_entry *choose(struct wr_annex *annex, const struct weir_stream *stream, const char *name)
{
    struct wr_annex_entry *set = wr_annex_set(annex, stream, name);
    for (size_t i = 0; i < WR_ANNEX_WAYS; i++)
        if (!set[i].metric || (set[i].name == name && set[i].metric->stream == stream))
            return &set[i];
    uint32_t declined = annex->declined++;
    return declined % WR_ANNEX_PATIENCE ? NULL : &set[declined / WR_ANNEX_PATIENCE % WR_ANNEX_WAYS];
}

/* What was put in before would mostly be in the wrong place from then on, and is found again in the registry.
 */
static void grow(struct wr_annex *annex)
{
    for (uint32_t i = 0; i < annex->used; i++)
        annex->entries[i] = (struct wr_annex_entry){0};
    annex->used = annex->used ? annex->used * WR_ANNEX_GROWTH : WR_ANNEX_SMALLEST;
    annex->declined = 0;
}

void wr_annex_put(struct wr_annex *annex, struct weir_metric *metric, const char *name)
{
    if (!annex->entries)
        return;
    if (!annex->used || (annex->declined > annex->used / 4 && annex->used < WR_ANNEX_LARGEST))
        grow(annex);
    struct wr_annex_entry *entry = choose(annex, metric->stream, name);
    if (!entry)
        return;
    entry->name = name;
    entry->metric = metric;
}
