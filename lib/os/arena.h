/* arena: memory that is never freed, taken directly from mmap.
 *
 * It holds everything that producers can reach. No lock of malloc is taken, which a signal handler or a forked
 * child might find held. Not thread-safe: the caller serialises. */
#ifndef WR_ARENA_H
#define WR_ARENA_H

#include <stddef.h>

struct wr_arena {
    char *next, *end;
    size_t chunk_bytes; /* size of the current chunk */
};

/* Returns zeroed memory, aligned to `align`, a power of two of at most a page. NULL if out of memory. */
void *wr_arena_get(struct wr_arena *arena, size_t size, size_t align);

#endif
