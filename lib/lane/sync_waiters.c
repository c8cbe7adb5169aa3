#include "lane/sync_waiters.h"

#include <string.h>

#include <weir/weir.h>

#include "os/pages.h"

enum { FIRST_ROOM = 128 };

void wr_sync_waiters_fini(struct wr_sync_waiters *waiters)
{
    wr_pages_put(waiters->calls);
}

static bool has_room(struct wr_sync_waiters *waiters)
{
    if (waiters->count < waiters->room)
        return true;
    uint32_t room = waiters->room ? waiters->room * 2 : FIRST_ROOM;
    struct wr_sync_call *calls = wr_pages_grow(waiters->calls, room * sizeof *calls);
    if (!calls)
        return false;
    waiters->calls = calls;
    waiters->room = room;
    return true;
}

void wr_sync_waiters_add(struct wr_sync_waiters *waiters, uint64_t sequence, struct wr_ticket ticket)
{
    if (!ticket.state)
        return;
    if (waiters->error)
        wr_ticket_complete(ticket, waiters->error);
    else if (has_room(waiters))
        waiters->calls[waiters->count++] = (struct wr_sync_call){sequence, ticket};
    else
        wr_ticket_complete(ticket, WEIR_ERR_MEMORY);
}

void wr_sync_waiters_complete(struct wr_sync_waiters *waiters, uint64_t first, uint64_t end, int result)
{
    uint32_t from = 0;
    while (from < waiters->count && waiters->calls[from].sequence <= first)
        from++;
    uint32_t to = from;
    while (to < waiters->count && waiters->calls[to].sequence <= end)
        wr_ticket_complete(waiters->calls[to++].ticket, result);
    if (from == to)
        return;
    memmove(waiters->calls + from, waiters->calls + to, (waiters->count - to) * sizeof *waiters->calls);
    waiters->count -= to - from;
}

void wr_sync_waiters_fail(struct wr_sync_waiters *waiters, int error)
{
    waiters->error = error;
    if (error)
        wr_sync_waiters_complete(waiters, 0, UINT64_MAX, error);
}
