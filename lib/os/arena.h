/* arena: memory that lives until the process ends, straight from mmap.
 *
 * What producers can reach lies here: it is never freed, and getting it takes no lock of malloc's that a signal
 * handler or a forked child might find held. The caller serialises. */
#ifndef WR_ARENA_H
#define WR_ARENA_H

#include <stddef.h>

struct wr_arena {
    char *next, *end;
    size_t chunk_bytes; /* of the chunk being filled */
};

/* Zeroed memory, aligned to `align` (a power of two, at most a page); NULL without memory. */
void *wr_arena_get(struct wr_arena *arena, size_t size, size_t align);

#endif
