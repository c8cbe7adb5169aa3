#include "forward_reported.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../forwarding/forward_identity.h"

struct entry {
    struct entry *next;
    uint8_t id[WIRE_ID]; /* of the process: a forked child has ledgers of its own */
    struct reported reported;
    char handler[];
};

/* Workers of other handlers look through it meanwhile, and a fork may come at any time, so there is no lock:
 * entries are only put in front. */
static _Atomic(struct entry *) entries;

static struct entry *find(const uint8_t id[WIRE_ID], const char *handler)
{
    struct entry *entry = atomic_load(&entries); /* pairs with the exchange in put_in_front */
    while (entry && (memcmp(entry->id, id, WIRE_ID) != 0 || strcmp(entry->handler, handler) != 0))
        entry = entry->next;
    return entry;
}

static void put_in_front(struct entry *entry)
{
    entry->next = atomic_load(&entries);
    while (!atomic_compare_exchange_weak(&entries, &entry->next, entry))
        ;
}

struct reported *wr_forward_reported(const char *handler)
{
    uint8_t id[WIRE_ID];
    wr_forward_id(id);
    struct entry *entry = find(id, handler);
    if (entry)
        return &entry->reported;
    size_t length = strlen(handler) + 1;
    entry = calloc(1, sizeof *entry + length);
    if (!entry)
        return NULL;
    memcpy(entry->id, id, WIRE_ID);
    memcpy(entry->handler, handler, length);
    put_in_front(entry);
    return &entry->reported;
}
