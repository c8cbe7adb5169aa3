/* array: arrays that grow. */
#ifndef WR_ARRAY_H
#define WR_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Makes room for `count` items of item_size bytes. Returns the array, which may have moved; new items are zero.
 * *room: how many items fit, 0 with items NULL. Returns NULL if out of memory; then nothing has changed. */
static inline void *wr_array_reserve(void *items, uint32_t *room, uint32_t count, size_t item_size);

void *wr_array_grow(void *items, uint32_t *room, uint32_t count, size_t item_size);

static inline void *wr_array_reserve(void *items, uint32_t *room, uint32_t count, size_t item_size)
{
    return items && count <= *room ? items : wr_array_grow(items, room, count, item_size);
}

/* The same for an array by its address. Returns whether there is room. */
#define WR_ARRAY_HAS_ROOM(array, room, count) wr_array_has_room((array), (room), (count), sizeof **(array))

static inline bool wr_array_has_room(void *array, uint32_t *room, uint32_t count, size_t item_size)
{
    void *items; /* copied, since a pointer to another type must not be accessed as void * */
    memcpy(&items, array, sizeof items);
    items = wr_array_reserve(items, room, count, item_size);
    if (items)
        memcpy(array, &items, sizeof items);
    return items;
}

#endif
