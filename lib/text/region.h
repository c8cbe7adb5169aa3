/* region: memory that is freed all at once. Not thread-safe. */
#ifndef WR_REGION_H
#define WR_REGION_H

#include <stddef.h>

struct wr_region_block;

/* All zeros: empty. */
struct wr_region {
    struct wr_region_block *blocks;
};

void wr_region_fini(struct wr_region *region);

/* Frees everything, but keeps some memory for the next allocations. */
void wr_region_clear(struct wr_region *region);

/* Returns zeroed memory, aligned for any type. NULL if out of memory. */
void *wr_region_alloc(struct wr_region *region, size_t size);

/* Returns a copy of a text, with a NUL appended. NULL if out of memory. */
char *wr_region_text(struct wr_region *region, const char *text, size_t length);

#endif
