#include "os/slab.h"

#include <string.h>

#include "os/pages.h"
#include "text/common.h"

enum { CHUNK = 256 * 1024 };

struct wr_slab_block {
    struct wr_slab_block *next;
};

struct wr_slab_chunk {
    WR_ALIGNED_LINE struct wr_slab_chunk *next;
};

void wr_slab_fini(struct wr_slab *slab)
{
    struct wr_slab_chunk *chunk = slab->chunks;
    while (chunk) {
        struct wr_slab_chunk *next = chunk->next;
        wr_pages_put(chunk);
        chunk = next;
    }
    *slab = (struct wr_slab){0};
}

/* Returns WR_SLAB_CLASSES if the size is too large. */
static unsigned class_of(size_t size)
{
    unsigned class = 0;
    while (class < WR_SLAB_CLASSES && size > (size_t)WR_SLAB_SMALLEST << class)
        class ++;
    return class;
}

/* What is left of the former chunk is lost: less than the largest block. */
static bool add_chunk(struct wr_slab *slab)
{
    struct wr_slab_chunk *chunk = wr_pages_get(CHUNK);
    if (!chunk)
        return false;
    chunk->next = slab->chunks;
    slab->chunks = chunk;
    slab->at = (char *)(chunk + 1);
    slab->left = CHUNK - sizeof *chunk;
    return true;
}

void *wr_slab_get(struct wr_slab *slab, size_t size)
{
    unsigned class = class_of(size);
    if (class == WR_SLAB_CLASSES)
        return NULL;
    size_t bytes = (size_t)WR_SLAB_SMALLEST << class;
    struct wr_slab_block *block = slab->free[class];
    if (block) {
        slab->free[class] = block->next;
        return memset(block, 0, bytes);
    }
    if (slab->left < bytes && !add_chunk(slab))
        return NULL;
    void *memory = slab->at;
    slab->at += bytes;
    slab->left -= bytes;
    return memory;
}

void wr_slab_put(struct wr_slab *slab, void *memory, size_t size)
{
    struct wr_slab_block *block = memory;
    unsigned class = class_of(size);
    if (!block)
        return;
    block->next = slab->free[class];
    slab->free[class] = block;
}

void *wr_slab_reserve(struct wr_slab *slab, void *items, uint32_t *room, uint32_t count, size_t item_size)
{
    if (items && count <= *room)
        return items;
    uint32_t more = count < 2 * *room ? 2 * *room : count;
    unsigned class = class_of(more * item_size);
    void *larger = class < WR_SLAB_CLASSES ? wr_slab_get(slab, more * item_size) : NULL;
    if (!larger)
        return NULL;
    if (items) {
        memcpy(larger, items, *room * item_size);
        wr_slab_put(slab, items, *room * item_size);
    }
    *room = (uint32_t)(((size_t)WR_SLAB_SMALLEST << class) / item_size);
    return larger;
}
