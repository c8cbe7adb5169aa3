/* pages: memory straight from the kernel, for what is allocated or freed while a lock is held that a call which
 * adds a value may wait for: the round lock, and those of the lanes.
 *
 * malloc must not be used there. A signal handler may interrupt a thread inside malloc and then wait, directly
 * or not, for that lock; if its holder waits for malloc, neither goes on. The kernel's own locks are never held
 * by an interrupted thread. Each block takes whole pages and two system calls, so this is for large or rare
 * ones. */
#ifndef WR_PAGES_H
#define WR_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns zeroed memory, aligned to a cache line. NULL if out of memory. */
void *wr_pages_get(size_t size);

/* Enlarges a block, which may move; what is added is zeroed. memory: NULL: a new one. Returns NULL if out of
 * memory; the block is unchanged then. */
void *wr_pages_grow(void *memory, size_t size);

/* As WR_ARRAY_HAS_ROOM, with pages. */
#define WR_PAGES_HAS_ROOM(array, room, count) wr_pages_has_room((array), (room), (count), sizeof **(array))
bool wr_pages_has_room(void *array, uint32_t *room, uint32_t count, size_t item_size);

/* How many bytes of a block can be used: at least its size. */
size_t wr_pages_room(const void *memory);

/* Returns a copy of a text; NULL if out of memory. */
char *wr_pages_copy(const char *text);

/* Frees a block. May be NULL. */
void wr_pages_put(void *memory);

#endif
