#include "text/array.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

void *wr_array_grow(void *items, uint32_t *room, uint32_t count, size_t item_size)
{
    uint64_t larger = *room ? *room : FIRST_ROOM;
    while (larger < count)
        larger *= 2;
    if (larger > UINT32_MAX)
        return NULL;
    char *grown = realloc(items, larger * item_size);
    if (!grown)
        return NULL;
    memset(grown + *room * item_size, 0, (larger - *room) * item_size);
    *room = (uint32_t)larger;
    return grown;
}
