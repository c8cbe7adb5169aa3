/* keep: memory that is freed all at once. Not for sharing between threads. */
#ifndef WR_REGION_H
#define WR_REGION_H

#include <stddef.h>

struct wr_region_block;

/* All zeros: empty. */
struct wr_region {
    struct wr_region_block *blocks;
};

void wr_region_fini(struct wr_region *keep);

/* Zeroed memory; NULL without memory. */
void *wr_region_alloc(struct wr_region *keep, size_t size);

/* A copy of a text, with a NUL behind it. */
char *wr_region_text(struct wr_region *keep, const char *text, size_t length);

#endif
