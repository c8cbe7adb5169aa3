#include "producer/gate.h"

#include <limits.h>

#include "os/futex.h"

/* The setter stores gate, then loads waiters; the waiter adds to waiters, then the kernel loads gate. All are
 * sequentially consistent: either the setter sees the waiter and wakes it, or the kernel sees the new gate and
 * does not put the waiter to sleep. */

static enum wr_gate checked(enum wr_gate gate)
{
    switch (gate) {
    case WR_GATE_OPEN: return WR_GATE_CHECKED;
    case WR_GATE_OPEN_UNTIMED: return WR_GATE_CHECKED_UNTIMED;
    case WR_GATE_OPEN_RANKED: return WR_GATE_CHECKED_RANKED;
    default: return gate;
    }
}

void wr_gate_set(struct wr_group *group, enum wr_gate gate)
{
    enum wr_gate unranked = gate == WR_GATE_OPEN_RANKED ? WR_GATE_OPEN_UNTIMED : gate;
    uint32_t before = atomic_exchange(&group->gate, unranked);
    atomic_store_explicit(&group->instrument_gate, checked(unranked), memory_order_relaxed);
    atomic_store_explicit(&group->histogram_gate, checked(gate), memory_order_relaxed);
    if (before == WR_GATE_WAIT && gate != WR_GATE_WAIT && atomic_load(&group->waiters))
        wr_futex_wake(&group->gate, INT_MAX);
}

void wr_gate_wait(struct wr_group *group, int64_t timeout_ns)
{
    atomic_fetch_add(&group->waiters, 1);
    wr_futex_wait(&group->gate, WR_GATE_WAIT, timeout_ns);
    atomic_fetch_sub(&group->waiters, 1);
}
