/* keep: memory that is freed all at once. Not for sharing between threads. */
#ifndef WR_KEEP_H
#define WR_KEEP_H

#include <stddef.h>

struct wr_keep_block;

/* All zeros: empty. */
struct wr_keep {
    struct wr_keep_block *blocks;
};

void wr_keep_fini(struct wr_keep *keep);

/* Zeroed memory; NULL without memory. */
void *wr_keep_get(struct wr_keep *keep, size_t size);

/* A copy of a text, with a NUL behind it. */
char *wr_keep_text(struct wr_keep *keep, const char *text, size_t length);

#endif
