/* gate: reading and setting a group's gate, and waiting for it. */
#ifndef WR_GATE_H
#define WR_GATE_H

#include <stdint.h>

#include "registry/registry.h"

/* acquire: pairs with the exchange in wr_gate_set. A call that finds the gate that a shutdown has set also
 * finds that its producer was closed before. */
static inline enum wr_gate wr_gate_read(const struct wr_group *group)
{
    return (enum wr_gate)atomic_load_explicit(&group->gate, memory_order_acquire);
}

/* [dispatcher's round] Sets the gate; wakes the threads that wait for it to leave WAIT. */
void wr_gate_set(struct wr_group *group, enum wr_gate gate);

/* [dispatcher's round] Whether sources wait, while calls may pass the gate. Sequentially consistent, as the
 * load: see struct wr_room_waiter. */
static inline void wr_gate_hold(struct wr_group *group, bool held)
{
    atomic_store(&group->held, held);
}

static inline bool wr_gate_is_held(const struct wr_group *group)
{
    return atomic_load(&group->held);
}

/* [producer] Waits while the gate is WAIT, at most timeout_ns; may return early. */
void wr_gate_wait(struct wr_group *group, int64_t timeout_ns);

#endif
