#include "waitlist.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

void wr_waitlist_fini(struct wr_waitlist *list)
{
    free(list->entries);
    *list = (struct wr_waitlist){0};
}

static bool has_room(struct wr_waitlist *list)
{
    if (list->count < list->room)
        return true;
    uint32_t room = list->room ? list->room * 2 : 8;
    struct wr_waitlist_entry *entries = realloc(list->entries, room * sizeof *entries);
    if (!entries)
        return false;
    list->entries = entries;
    list->room = room;
    return true;
}

void wr_waitlist_add(struct wr_waitlist *list, uint64_t sequence, struct wr_ticket ticket)
{
    if (has_room(list))
        list->entries[list->count++] = (struct wr_waitlist_entry){sequence, ticket};
    else
        wr_ticket_answer(ticket, WEIR_ERR_MEMORY);
}

void wr_waitlist_answer(struct wr_waitlist *list, uint64_t first, uint64_t end, int answer)
{
    uint32_t from = 0;
    while (from < list->count && list->entries[from].sequence <= first)
        from++;
    uint32_t to = from;
    while (to < list->count && list->entries[to].sequence <= end)
        wr_ticket_answer(list->entries[to++].ticket, answer);
    if (from == to)
        return;
    memmove(list->entries + from, list->entries + to, (list->count - to) * sizeof *list->entries);
    list->count -= to - from;
}
