/* room: wakes threads that wait for room in a ring or in a queue without sleeping on a gate, because they wait
 * for descriptors as well. */
#ifndef WR_ROOM_H
#define WR_ROOM_H

#include <stdatomic.h>
#include <stdbool.h>

#include "os/wake_pair.h"

struct wr_room_waiter {
    /* Set by the waiter before it tries for the last time. Sequentially consistent, as is the exchange at the
     * end of a round: either the round finds it set, or the last try sees what the round has freed. */
    _Atomic bool wanted;
    struct wr_wake_pair *wake; /* at the end of the next round */
    struct wr_room_waiter *next;
};

/* [round lock] */
void wr_room_add(struct wr_room_waiter **waiters, struct wr_room_waiter *waiter);
void wr_room_remove(struct wr_room_waiter **waiters, struct wr_room_waiter *waiter);

/* [round lock] At the end of a round: wakes those that want it. */
void wr_room_wake(struct wr_room_waiter *waiters);

#endif
