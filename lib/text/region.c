#include "text/region.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 4000 };

struct wr_region_block {
    struct wr_region_block *next;
    size_t used, room;
    alignas(max_align_t) char bytes[];
};

static void free_blocks(struct wr_region_block *block)
{
    while (block) {
        struct wr_region_block *next = block->next;
        free(block);
        block = next;
    }
}

void wr_region_fini(struct wr_region *region)
{
    free_blocks(region->blocks);
    region->blocks = NULL;
}

void wr_region_clear(struct wr_region *region)
{
    struct wr_region_block *kept = region->blocks;
    if (!kept)
        return;
    free_blocks(kept->next);
    kept->next = NULL;
    if (kept->room > BLOCK_BYTES) {
        wr_region_fini(region);
        return;
    }
    memset(kept->bytes, 0, kept->used);
    kept->used = 0;
}

void *wr_region_alloc(struct wr_region *region, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    struct wr_region_block *block = region->blocks;
    if (!block || block->room - block->used < size) {
        size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;
        block = calloc(1, sizeof *block + room);
        if (!block)
            return NULL;
        block->room = room;
        block->next = region->blocks;
        region->blocks = block;
    }
    void *memory = block->bytes + block->used;
    block->used += size;
    return memory;
}

char *wr_region_text(struct wr_region *region, const char *text, size_t length)
{
    char *copy = wr_region_alloc(region, length + 1);
    return copy ? memcpy(copy, text, length) : NULL;
}
