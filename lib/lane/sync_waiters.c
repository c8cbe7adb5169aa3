#include "lane/sync_waiters.h"

#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

void wr_sync_waiters_fini(struct wr_sync_waiters *waiting)
{
    free(waiting->calls);
}

static bool has_room(struct wr_sync_waiters *waiting)
{
    if (waiting->count < waiting->room)
        return true;
    uint32_t room = waiting->room ? waiting->room * 2 : 8;
    struct wr_sync_waiters_call *calls = realloc(waiting->calls, room * sizeof *calls);
    if (!calls)
        return false;
    waiting->calls = calls;
    waiting->room = room;
    return true;
}

void wr_sync_waiters_add(struct wr_sync_waiters *waiting, uint64_t sequence, struct wr_ticket ticket)
{
    if (!ticket.desk)
        return;
    if (waiting->told)
        wr_ticket_answer(ticket, waiting->told);
    else if (has_room(waiting))
        waiting->calls[waiting->count++] = (struct wr_sync_waiters_call){sequence, ticket};
    else
        wr_ticket_answer(ticket, WEIR_ERR_MEMORY);
}

void wr_sync_waiters_answer(struct wr_sync_waiters *waiting, uint64_t first, uint64_t end, int answer)
{
    uint32_t from = 0;
    while (from < waiting->count && waiting->calls[from].sequence <= first)
        from++;
    uint32_t to = from;
    while (to < waiting->count && waiting->calls[to].sequence <= end)
        wr_ticket_answer(waiting->calls[to++].ticket, answer);
    if (from == to)
        return;
    memmove(waiting->calls + from, waiting->calls + to, (waiting->count - to) * sizeof *waiting->calls);
    waiting->count -= to - from;
}
