#include "text/keys.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "text/hash.h"

enum { FIRST_ROOM = 64 };

struct wr_keys_entry {
    uint64_t hash;
    uint32_t object; /* 0: an empty place */
    const char *key;
};

/* Where an entry is, or would be. */
static struct wr_keys_entry *find(struct wr_keys_entry *entries, size_t room,
                                  const struct wr_keys_entry *wanted)
{
    size_t i = wanted->hash & (room - 1);
    while (entries[i].object && (entries[i].hash != wanted->hash || entries[i].object != wanted->object ||
                                 strcmp(entries[i].key, wanted->key) != 0))
        i = (i + 1) & (room - 1);
    return &entries[i];
}

static bool grow(struct wr_keys *keys)
{
    if (keys->count < keys->room / 2)
        return true;
    size_t room = keys->room ? keys->room * 2 : FIRST_ROOM;
    struct wr_keys_entry *entries = calloc(room, sizeof *entries);
    if (!entries)
        return false;
    for (size_t i = 0; i < keys->room; i++)
        if (keys->entries[i].object)
            *find(entries, room, &keys->entries[i]) = keys->entries[i];
    free(keys->entries);
    keys->entries = entries;
    keys->room = room;
    return true;
}

enum wr_keys_answer wr_keys_add(struct wr_keys *keys, uint32_t object, const char *key, size_t length)
{
    if (!grow(keys))
        return WR_KEYS_NO_MEMORY;
    const struct wr_keys_entry wanted = {wr_hash_bytes(object, key, length), object, key};
    struct wr_keys_entry *entry = find(keys->entries, keys->room, &wanted);
    if (entry->object)
        return WR_KEYS_TWICE;
    *entry = wanted;
    keys->count++;
    return WR_KEYS_NEW;
}

void wr_keys_fini(struct wr_keys *keys)
{
    free(keys->entries);
    *keys = (struct wr_keys){0};
}
