#include "dispatch/room.h"

#include <stddef.h>

void wr_room_add(struct wr_room_waiter **waiters, struct wr_room_waiter *waiter)
{
    waiter->next = *waiters;
    *waiters = waiter;
}

void wr_room_remove(struct wr_room_waiter **waiters, struct wr_room_waiter *waiter)
{
    while (*waiters && *waiters != waiter)
        waiters = &(*waiters)->next;
    if (*waiters)
        *waiters = waiter->next;
}

void wr_room_wake(struct wr_room_waiter *waiters)
{
    for (; waiters; waiters = waiters->next)
        if (atomic_load(&waiters->wanted) && atomic_exchange(&waiters->wanted, false))
            wr_wake_pair_wake(waiters->wake);
}
