#include "os/pages.h"

#include <string.h>
#include <sys/mman.h>

#include "text/common.h"

enum { PAGE = 4096 };

/* In front of each block. */
struct head {
    WR_ALIGNED_LINE size_t bytes; /* of the mapping */
};

/* Returns 0 if it is too large. */
static size_t round_up(size_t size)
{
    return size > SIZE_MAX / 2 ? 0 : (size + sizeof(struct head) + PAGE - 1) / PAGE * PAGE;
}

static struct head *head_of(const void *memory)
{
    return (struct head *)memory - 1;
}

static void *start(void *mapping, size_t bytes)
{
    struct head *head = mapping;
    if (mapping == MAP_FAILED)
        return NULL;
    head->bytes = bytes;
    return head + 1;
}

void *wr_pages_get(size_t size)
{
    size_t bytes = round_up(size);
    if (!bytes)
        return NULL;
    return start(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), bytes);
}

void *wr_pages_grow(void *memory, size_t size)
{
    size_t bytes = round_up(size);
    if (!memory)
        return wr_pages_get(size);
    if (!bytes)
        return NULL;
    if (bytes <= head_of(memory)->bytes)
        return memory;
    return start(mremap(head_of(memory), head_of(memory)->bytes, bytes, MREMAP_MAYMOVE), bytes);
}

bool wr_pages_has_room(void *array, uint32_t *room, uint32_t count, size_t item_size)
{
    void *items;
    memcpy(&items, array, sizeof items);
    if (items && count <= *room)
        return true;
    size_t wanted = count > 2 * (size_t)*room ? count : 2 * (size_t)*room;
    items = wr_pages_grow(items, wanted * item_size);
    if (!items)
        return false;
    size_t fitting = wr_pages_room(items) / item_size;
    *room = fitting < UINT32_MAX ? (uint32_t)fitting : UINT32_MAX;
    memcpy(array, &items, sizeof items);
    return true;
}

size_t wr_pages_room(const void *memory)
{
    return head_of(memory)->bytes - sizeof(struct head);
}

char *wr_pages_copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = wr_pages_get(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

void wr_pages_put(void *memory)
{
    if (memory)
        munmap(head_of(memory), head_of(memory)->bytes);
}
