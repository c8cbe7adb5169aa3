#include "os/wakeup.h"

#include "os/futex.h"

/* Sleeper: asleep = 1, then look for work, then sleep while asleep is 1. Sender: publish work, then asleep = 0.
 * All accesses are sequentially consistent, so either the sleeper finds the work or the sender finds asleep =
 * 1: the store in prepare pairs with the exchange in send, the sender's store of the work with the sleeper's
 * load.
 */

void wr_wakeup_send(struct wr_wakeup *wakeup)
{
    atomic_store(&wakeup->sent, 1);
    if (atomic_load(&wakeup->asleep) && atomic_exchange(&wakeup->asleep, 0))
        wr_futex_wake(&wakeup->asleep, 1);
}

void wr_wakeup_prepare(struct wr_wakeup *wakeup)
{
    atomic_store(&wakeup->asleep, 1);
}

void wr_wakeup_wait(struct wr_wakeup *wakeup, int64_t timeout_ns)
{
    if (!atomic_exchange(&wakeup->sent, 0))
        wr_futex_wait(&wakeup->asleep, 1, timeout_ns);
    atomic_store(&wakeup->asleep, 0);
    atomic_store(&wakeup->sent, 0);
}
