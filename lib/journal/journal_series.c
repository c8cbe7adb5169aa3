#include "journal/journal_series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "segment/series_codec.h"
#include "text/array.h"

enum { FILE_BYTES = 256 * 1024 };

/* ---- Writing --------------------------------------------------------------------------------- */

static size_t measure(const weir_series *view)
{
    size_t bytes = sizeof(struct wr_journal_definition) + wr_series_codec_bytes(view);
    return (bytes + 7) / 8 * 8;
}

static void put_definition(char *to, const weir_series *view, bool is_part, size_t bytes)
{
    const struct wr_journal_definition definition = {
        .bytes = (uint32_t)bytes,
        .id = view->id,
        .flags = (uint16_t)(wr_series_codec_flags(view) | (is_part ? WR_SERIES_CODEC_PART : 0u)),
        .labels = (uint16_t)view->label_count,
    };
    memcpy(to, &definition, sizeof definition);
    wr_series_codec_put(to + sizeof definition, view);
}

static struct wr_journal_series_head *head_of(const struct wr_journal_map *map)
{
    return (struct wr_journal_series_head *)map->memory;
}

/* Starts the next file and unmaps the full one. Returns 0 or errno. */
static int start_file(struct wr_journal_series *series, size_t bytes)
{
    struct wr_journal_map map;
    size_t size = sizeof(struct wr_journal_series_head) + bytes;
    int problem = wr_mapped_file_make(&map, series->folder, WR_JOURNAL_SERIES_KIND, series->files,
                                      size > FILE_BYTES ? size : FILE_BYTES);
    if (problem)
        return problem;
    head_of(&map)->version = WR_JOURNAL_VERSION;
    atomic_signal_fence(memory_order_seq_cst);
    head_of(&map)->magic = WR_JOURNAL_SERIES;
    wr_mapped_file_close(&series->map);
    series->map = map;
    series->files++;
    return 0;
}

int wr_journal_series_put(struct wr_journal_series *series, const weir_series *view, bool is_part)
{
    size_t bytes = measure(view);
    uint64_t used = series->map.memory ? atomic_load(&head_of(&series->map)->used) : 0;
    if (series->map.size < sizeof(struct wr_journal_series_head) + used + bytes) {
        int problem = start_file(series, bytes);
        if (problem)
            return problem;
        used = 0;
    }
    struct wr_journal_series_head *head = head_of(&series->map);
    put_definition((char *)(head + 1) + used, view, is_part, bytes);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&head->used, used + bytes, memory_order_relaxed);
    if (view->id == series->known)
        series->known++;
    return 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Returns false if out of memory, or if the id is beyond the next one. */
static bool add_view(struct wr_journal_views *views, const struct wr_journal_definition *definition)
{
    uint32_t count = views->count;
    if (definition->id > count)
        return false;
    if (definition->id < count) {
        views->items[definition->id] = definition;
        return true;
    }
    if (!WR_ARRAY_HAS_ROOM(&views->items, &views->room, count + 1))
        return false;
    views->items[views->count++] = definition;
    return true;
}

bool wr_journal_views_add(struct wr_journal_views *views, const struct wr_journal_map *map)
{
    const struct wr_journal_series_head *head = head_of(map);
    if (map->size < sizeof *head || head->magic != WR_JOURNAL_SERIES || head->version != WR_JOURNAL_VERSION) {
        views->damaged |= map->size < sizeof *head || head->magic;
        return true;
    }
    uint64_t used = atomic_load(&head->used), at = 0;
    if (used > map->size - sizeof *head) {
        views->damaged = true;
        used = map->size - sizeof *head;
    }
    while (used - at >= sizeof(struct wr_journal_definition)) {
        const void *place = (const char *)(head + 1) + at;
        const struct wr_journal_definition *definition = place;
        if (definition->bytes < sizeof *definition || definition->bytes % 8 || definition->bytes > used - at)
            break;
        uint32_t before = views->count;
        if (!add_view(views, definition)) {
            if (definition->id == before)
                return false;
            break;
        }
        at += definition->bytes;
    }
    views->damaged |= at != used;
    return true;
}

void wr_journal_views_fini(struct wr_journal_views *views)
{
    free(views->items);
    *views = (struct wr_journal_views){0};
}

bool wr_journal_views_get(const struct wr_journal_views *views, uint32_t id, weir_series *view,
                          struct wr_series_codec_room *room)
{
    if (id >= views->count)
        return false;
    const struct wr_journal_definition *definition = views->items[id];
    const char *at = (const char *)(definition + 1), *end = (const char *)definition + definition->bytes;
    bool whole = wr_series_codec_take(&at, end, definition->flags, definition->labels, view, room);
    view->id = id;
    return whole && !(definition->flags & WR_SERIES_CODEC_PART);
}
