#include "os/wakeup.h"

#include "os/futex.h"

/* Sleeper: asleep = 1, then look for work, then sleep while asleep is 1. Ringer: bring work, then asleep = 0.
 * All sequentially consistent, so that either the sleeper's look finds the work or the ringer finds asleep = 1
 * (prepare's store pairs with ring's exchange, the ringer's store of the work with the sleeper's load of it).
 */

void wr_wakeup_send(struct wr_wakeup *wakeup)
{
    atomic_store(&wakeup->rung, 1);
    if (atomic_load(&wakeup->asleep) && atomic_exchange(&wakeup->asleep, 0))
        wr_futex_wake(&wakeup->asleep, 1);
}

void wr_wakeup_prepare(struct wr_wakeup *wakeup)
{
    atomic_store(&wakeup->asleep, 1);
}

void wr_wakeup_wait(struct wr_wakeup *wakeup, int64_t timeout_ns)
{
    if (!atomic_exchange(&wakeup->rung, 0))
        wr_futex_wait(&wakeup->asleep, 1, timeout_ns);
    atomic_store(&wakeup->asleep, 0);
    atomic_store(&wakeup->rung, 0);
}
