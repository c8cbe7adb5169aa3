#include "text/name_index.h"

#include <stdlib.h>
#include <string.h>

#include "text/hash.h"

enum { SMALLEST = 16, SEED = 0x77656972 };

struct wr_name_index_slot {
    const char *name; /* NULL: empty */
    size_t length, number;
    uint64_t hash;
};

/* The slot of a name, or the empty one where it belongs. */
static struct wr_name_index_slot *find_slot(const struct wr_name_index *names, const char *name, size_t length,
                                            uint64_t hash)
{
    size_t i = hash & (names->capacity - 1);
    for (;; i = (i + 1) & (names->capacity - 1)) {
        struct wr_name_index_slot *slot = &names->slots[i];
        bool is_same = slot->name && slot->hash == hash && slot->length == length;
        if (!slot->name || (is_same && memcmp(slot->name, name, length) == 0))
            return slot;
    }
}

/* At most half of the slots are in use, so that a search ends soon. */
static bool grow(struct wr_name_index *names)
{
    if (names->count < names->capacity / 2)
        return true;
    struct wr_name_index grown = {.count = names->count,
                                  .capacity = names->capacity ? names->capacity * 2 : SMALLEST};
    grown.slots = calloc(grown.capacity, sizeof *grown.slots);
    if (!grown.slots)
        return false;
    for (size_t i = 0; i < names->capacity; i++) {
        const struct wr_name_index_slot *slot = &names->slots[i];
        if (slot->name)
            *find_slot(&grown, slot->name, slot->length, slot->hash) = *slot;
    }
    free(names->slots);
    *names = grown;
    return true;
}

bool wr_name_index_add(struct wr_name_index *names, const char *name, size_t number)
{
    size_t length = strlen(name);
    uint64_t hash = wr_hash_bytes(SEED, name, length);
    if (!grow(names))
        return false;
    struct wr_name_index_slot *slot = find_slot(names, name, length, hash);
    if (!slot->name) {
        *slot = (struct wr_name_index_slot){name, length, number, hash};
        names->count++;
    }
    return true;
}

size_t wr_name_index_find(const struct wr_name_index *names, const char *name, size_t length)
{
    if (!names->count)
        return SIZE_MAX;
    const struct wr_name_index_slot *slot = find_slot(names, name, length, wr_hash_bytes(SEED, name, length));
    return slot->name ? slot->number : SIZE_MAX;
}

bool wr_name_index_has(const struct wr_name_index *names, const char *name)
{
    return wr_name_index_find(names, name, strlen(name)) != SIZE_MAX;
}

void wr_name_index_fini(struct wr_name_index *names)
{
    free(names->slots);
    *names = (struct wr_name_index){0};
}
