#include "os/lock.h"

#include <limits.h>

#include "os/clock.h"
#include "text/common.h"
#include "os/futex.h"
#include "os/signals.h"

/* States of the word. CONTENDED: threads may sleep on it, so releasing it must wake one. */
enum { FREE, HELD, CONTENDED };

/* Critical sections are short: most end before a thread would have gone to sleep. */
enum { SPINS = 100 };

static bool try_enter(struct wr_lock *lock)
{
    uint32_t expected = FREE;
    /* acquire: pairs with the release in wr_lock_leave */
    return atomic_compare_exchange_strong_explicit(&lock->word, &expected, HELD, memory_order_acquire,
                                                   memory_order_relaxed);
}

static bool spin(struct wr_lock *lock)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&lock->word, memory_order_relaxed) == FREE && try_enter(lock))
            return true;
        wr_clock_relax();
    }
    return false;
}

bool wr_lock_enter_by(struct wr_lock *lock, int64_t deadline_ns)
{
    if (try_enter(lock) || spin(lock))
        return true;
    /* acquire: pairs with the release in wr_lock_leave. A sleeper that takes the lock sets CONTENDED, since it
     * does not know whether it was the last sleeper: at worst one superfluous wake-up. */
    while (atomic_exchange_explicit(&lock->word, CONTENDED, memory_order_acquire) != FREE) {
        int64_t left = deadline_ns == WR_NEVER ? WR_NEVER : deadline_ns - wr_clock_monotonic_ns();
        if (left <= 0)
            return false;
        wr_futex_wait(&lock->word, CONTENDED, left);
    }
    return true;
}

void wr_lock_enter(struct wr_lock *lock)
{
    wr_lock_enter_by(lock, WR_NEVER);
}

void wr_lock_leave(struct wr_lock *lock)
{
    if (atomic_exchange_explicit(&lock->word, FREE, memory_order_release) == CONTENDED)
        wr_futex_wake(&lock->word, 1);
}

void wr_lock_reset(struct wr_lock *lock)
{
    atomic_store_explicit(&lock->word, FREE, memory_order_relaxed);
}

/* `turn` is read and changed under the lock. A wake-up between here and the sleep is not lost, because the
 * kernel compares the word again. */
static uint32_t begin_wait(struct wr_condition *condition, struct wr_lock *lock)
{
    uint32_t turn = atomic_load_explicit(&condition->turn, memory_order_relaxed);
    condition->waiters++;
    wr_lock_leave(lock);
    return turn;
}

static void sleep_until(struct wr_condition *condition, uint32_t turn, int64_t deadline_ns)
{
    int64_t left = deadline_ns == WR_NEVER ? WR_NEVER : deadline_ns - wr_clock_monotonic_ns();
    wr_futex_wait(&condition->turn, turn, left);
}

static void end_wait(struct wr_condition *condition, struct wr_lock *lock)
{
    wr_lock_enter(lock);
    condition->waiters--;
}

void wr_condition_wait(struct wr_condition *condition, struct wr_lock *lock, int64_t deadline_ns)
{
    uint32_t turn = begin_wait(condition, lock);
    sleep_until(condition, turn, deadline_ns);
    end_wait(condition, lock);
}

void wr_condition_wait_open(struct wr_condition *condition, struct wr_lock *lock, int64_t deadline_ns,
                            const sigset_t *signals)
{
    sigset_t blocked;
    uint32_t turn = begin_wait(condition, lock);
    wr_signals_restore(signals);
    sleep_until(condition, turn, deadline_ns);
    wr_signals_block(&blocked);
    end_wait(condition, lock);
}

void wr_condition_wake(struct wr_condition *condition)
{
    if (!condition->waiters)
        return;
    atomic_fetch_add_explicit(&condition->turn, 1, memory_order_relaxed);
    wr_futex_wake(&condition->turn, INT_MAX);
}
