/* array: arrays that grow. */
#ifndef WR_ARRAY_H
#define WR_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/* Makes room for `count` items of item_size bytes. Returns the array, which may have moved; new items are zero.
 * *room: how many items fit, 0 with items NULL. Returns NULL if out of memory; then nothing has changed. */
static inline void *wr_array_reserve(void *items, uint32_t *room, uint32_t count, size_t item_size);

void *wr_array_grow(void *items, uint32_t *room, uint32_t count, size_t item_size);

static inline void *wr_array_reserve(void *items, uint32_t *room, uint32_t count, size_t item_size)
{
    return items && count <= *room ? items : wr_array_grow(items, room, count, item_size);
}

#endif
