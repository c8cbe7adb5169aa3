#include "source/member_table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 1024 };

void wr_member_table_fini(struct wr_member_table *table)
{
    free(table->hashes);
    *table = (struct wr_member_table){0};
}

void wr_member_table_clear(struct wr_member_table *table)
{
    if (table->room > FIRST_ROOM) {
        wr_member_table_fini(table);
        return;
    }
    table->count = 0;
    if (table->room)
        memset(table->hashes, 0, table->room * sizeof *table->hashes);
}

/* Returns the place of the hash, or the free one where it belongs. */
static uint64_t *find(uint64_t *hashes, uint32_t room, uint64_t hash)
{
    uint32_t i = (uint32_t)hash & (room - 1);
    while (hashes[i] && hashes[i] != hash)
        i = (i + 1) & (room - 1);
    return &hashes[i];
}

/* At most three quarters are in use, so that there is always a free place. */
static bool has_room(struct wr_member_table *table)
{
    if (table->count < table->room / 4 * 3)
        return true;
    uint32_t room = table->room ? table->room * 2 : FIRST_ROOM;
    uint64_t *hashes = calloc(room, sizeof *hashes);
    if (!hashes)
        return false;
    for (uint32_t i = 0; i < table->room; i++)
        if (table->hashes[i])
            *find(hashes, room, table->hashes[i]) = table->hashes[i];
    free(table->hashes);
    table->hashes = hashes;
    table->room = room;
    return true;
}

enum wr_member_result wr_member_table_add(struct wr_member_table *table, uint64_t hash, uint32_t most)
{
    hash += !hash;
    if (table->room && *find(table->hashes, table->room, hash))
        return WR_MEMBER_KNOWN;
    if (table->count >= most)
        return WR_MEMBER_BEYOND_LIMIT;
    if (!has_room(table))
        return WR_MEMBER_NO_MEMORY;
    *find(table->hashes, table->room, hash) = hash;
    table->count++;
    return WR_MEMBER_NEW;
}
