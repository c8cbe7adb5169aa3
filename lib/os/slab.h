/* slab: small blocks of memory, cut from pages straight from the kernel, for what is allocated while a lock is
 * held that a call which adds a value may wait for: malloc must not be used there, see pages.h.
 *
 * Sizes are rounded up to powers of two; a block that was returned is used again for its size. Not thread-safe:
 * the lock of whatever owns the slab protects it. */
#ifndef WR_SLAB_H
#define WR_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WR_SLAB_SMALLEST = 64,
    WR_SLAB_CLASSES = 12,
    WR_SLAB_LARGEST = WR_SLAB_SMALLEST << (WR_SLAB_CLASSES - 1)
};

/* All zeros: empty. */
struct wr_slab {
    struct wr_slab_block *free[WR_SLAB_CLASSES];
    struct wr_slab_chunk *chunks;
    char *at;    /* what is left of the latest chunk */
    size_t left; /* bytes */
};

/* Frees all memory at once. */
void wr_slab_fini(struct wr_slab *slab);

/* Returns zeroed memory, aligned to a cache line. NULL if out of memory, or if size exceeds WR_SLAB_LARGEST. */
void *wr_slab_get(struct wr_slab *slab, size_t size);

/* Returns a block of that size, with which it was obtained. May be NULL. */
void wr_slab_put(struct wr_slab *slab, void *memory, size_t size);

/* As wr_array_reserve, with memory of the slab. */
void *wr_slab_reserve(struct wr_slab *slab, void *items, uint32_t *room, uint32_t count, size_t item_size);

#endif
