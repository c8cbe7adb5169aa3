#include "names.h"

#include <stdint.h>
#include <string.h>

#include "text/hash.h"

enum { SLOTS = 1 << 16, MOST = SLOTS / 2 };

/* A name, by its hash: two that are equal in 64 bits would share their marks. */
struct slot {
    uint64_t key; /* 0: empty */
    unsigned marks;
};

static struct slot slots[SLOTS];
static unsigned used;

/* Open addressing, at most half full. */
static struct slot *find(const char *group, const char *name, uint64_t *key)
{
    *key = wr_hash_bytes(wr_hash_bytes(0, group, strlen(group)), name, strlen(name));
    *key += *key == 0;
    uint64_t i = *key % SLOTS;
    while (slots[i].key && slots[i].key != *key)
        i = (i + 1) % SLOTS;
    return &slots[i];
}

void names_mark(const char *group, const char *name, unsigned mark)
{
    uint64_t key;
    struct slot *slot = find(group, name, &key);
    if (!slot->key && used == MOST)
        return;
    used += !slot->key;
    slot->key = key;
    slot->marks |= mark;
}

bool names_has(const char *group, const char *name, unsigned mark)
{
    uint64_t key;
    return find(group, name, &key)->marks & mark;
}
