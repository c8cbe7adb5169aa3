/* gate: a group's gate, and waiting at it. */
#ifndef WR_GATE_H
#define WR_GATE_H

#include <stdint.h>

#include "registry/registry.h"

static inline enum wr_gate wr_gate_read(const struct wr_group *group)
{
    return (enum wr_gate)atomic_load_explicit(&group->gate, memory_order_relaxed);
}

/* [dispatcher's round] Sets the gate, and wakes whoever waits for it to leave WAIT. */
void wr_gate_set(struct wr_group *group, enum wr_gate gate);

/* [producer] Sleeps while the gate is WAIT, up to timeout_ns; may return early. */
void wr_gate_wait(struct wr_group *group, int64_t timeout_ns);

#endif
