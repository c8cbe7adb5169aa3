#include "bell.h"

#include "futex.h"

/* Sleeper: asleep = 1, then look for work, then sleep while asleep is 1. Ringer: bring work, then asleep = 0.
 * All sequentially consistent, so that either the sleeper's look finds the work or the ringer finds asleep = 1
 * (prepare's store pairs with ring's exchange, the ringer's store of the work with the sleeper's load of it).
 */

void wr_bell_ring(struct wr_bell *bell)
{
    atomic_store(&bell->rung, 1);
    if (atomic_load(&bell->asleep) && atomic_exchange(&bell->asleep, 0))
        wr_futex_wake(&bell->asleep, 1);
}

void wr_bell_prepare(struct wr_bell *bell)
{
    atomic_store(&bell->asleep, 1);
}

void wr_bell_sleep(struct wr_bell *bell, int64_t timeout_ns)
{
    if (!atomic_exchange(&bell->rung, 0))
        wr_futex_wait(&bell->asleep, 1, timeout_ns);
    atomic_store(&bell->asleep, 0);
    atomic_store(&bell->rung, 0);
}
