#include "os/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

enum { FIRST_CHUNK = 64 * 1024, LAST_CHUNK = 1024 * 1024 };

static size_t padding(const char *at, size_t align)
{
    return -(uintptr_t)at & (align - 1);
}

/* The rest of the current chunk stays unused: it is smaller than one allocation. */
static bool start_chunk(struct wr_arena *arena, size_t size)
{
    size_t chunk = arena->chunk_bytes ? arena->chunk_bytes * 2 : FIRST_CHUNK;
    if (chunk > LAST_CHUNK)
        chunk = LAST_CHUNK;
    if (chunk < size)
        chunk = size;
    void *memory = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    arena->next = memory;
    arena->end = arena->next + chunk;
    arena->chunk_bytes = chunk;
    return true;
}

void *wr_arena_get(struct wr_arena *arena, size_t size, size_t align)
{
    size_t pad = padding(arena->next, align);
    if (size > SIZE_MAX / 2)
        return NULL;
    if ((size_t)(arena->end - arena->next) < pad + size) {
        if (!start_chunk(arena, size))
            return NULL;
        pad = 0;
    }
    char *memory = arena->next + pad;
    arena->next = memory + size;
    return memory;
}
