#include "post_ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/hash.h"

struct post_id {
    uint64_t hash;
    const void *sender;
    char text[POST_ID_ROOM];
};

bool post_ids_init(struct post_ids *ids, size_t room)
{
    *ids = (struct post_ids){.room = room};
    ids->items = room ? calloc(room, sizeof *ids->items) : NULL;
    return !room || ids->items;
}

void post_ids_fini(struct post_ids *ids)
{
    free(ids->items);
}

bool post_ids_has(const struct post_ids *ids, const void *sender, const char *id)
{
    uint64_t hash = wr_hash_bytes(0, id, strlen(id));
    for (size_t i = 0; i < ids->count; i++)
        if (ids->items[i].hash == hash && ids->items[i].sender == sender && strcmp(ids->items[i].text, id) == 0)
            return true;
    return false;
}

void post_ids_add(struct post_ids *ids, const void *sender, const char *id)
{
    if (!ids->room)
        return;
    struct post_id *item = &ids->items[ids->next];
    item->hash = wr_hash_bytes(0, id, strlen(id));
    item->sender = sender;
    snprintf(item->text, sizeof item->text, "%s", id);
    ids->next = (ids->next + 1) % ids->room;
    ids->count += ids->count < ids->room;
}
