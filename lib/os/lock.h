/* lock: mutual exclusion and waiting, always with a deadline by the monotonic clock.
 *
 * Not pthread's, for three reasons: a lock taken at fork or exit must be given up in time; a forked child must
 * be able to put one right that another thread held; and ThreadSanitizer follows plain atomics, but not
 * pthread_mutex_clocklock. */
#ifndef WR_LOCK_H
#define WR_LOCK_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* All zeros: free. */
struct wr_lock {
    _Atomic uint32_t word;
};

/* All zeros: ready. Belongs to one lock. */
struct wr_condition {
    _Atomic uint32_t turn;
    uint32_t waiters; /* under the lock */
};

void wr_lock_enter(struct wr_lock *lock);

/* false: not free by deadline_ns (monotonic). */
bool wr_lock_enter_by(struct wr_lock *lock, int64_t deadline_ns);

void wr_lock_leave(struct wr_lock *lock);

/* In a forked child only: frees the lock, whoever held it. */
void wr_lock_reset(struct wr_lock *lock);

/* Leaves the lock, sleeps until woken or deadline_ns, and enters again. May return early: check what you wait
 * for. */
void wr_condition_wait(struct wr_condition *condition, struct wr_lock *lock, int64_t deadline_ns);

/* The same for a thread that holds the lock with all signals blocked: while it sleeps `signals` is its mask. */
void wr_condition_wait_open(struct wr_condition *condition, struct wr_lock *lock, int64_t deadline_ns,
                            const sigset_t *signals);

/* Wakes all that wait; with the lock held. No system call when nobody does. */
void wr_condition_wake(struct wr_condition *condition);

#endif
