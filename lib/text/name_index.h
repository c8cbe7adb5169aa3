/* name_index: finds the number of a name, in constant time. Not thread-safe while names are added. */
#ifndef WR_NAME_INDEX_H
#define WR_NAME_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wr_name_index_slot;

/* All zeros: empty. */
struct wr_name_index {
    struct wr_name_index_slot *slots;
    size_t count, capacity;
};

/* Adds a name, which is borrowed; a name that is there keeps its number. Returns false if out of memory. */
bool wr_name_index_add(struct wr_name_index *names, const char *name, size_t number);

/* A name's number; SIZE_MAX: it is not there. The name need not end with a NUL. */
size_t wr_name_index_find(const struct wr_name_index *names, const char *name, size_t length);

/* Whether a name is there. */
bool wr_name_index_has(const struct wr_name_index *names, const char *name);

/* Frees the index; it is empty then. */
void wr_name_index_fini(struct wr_name_index *names);

#endif
