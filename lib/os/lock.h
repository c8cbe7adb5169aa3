/* lock: locks and condition variables with deadlines by the monotonic clock.
 *
 * pthread's are not used for three reasons: attempts to lock at fork and exit must time out; a forked child
 * must be able to reset a lock that another thread held; and ThreadSanitizer understands atomics, but not
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

/* All zeros: ready. Used with one lock only. */
struct wr_condition {
    _Atomic uint32_t turn;
    uint32_t waiters; /* protected by the lock */
};

void wr_lock_enter(struct wr_lock *lock);

/* Returns false if the lock is not free by deadline_ns (monotonic). */
bool wr_lock_enter_by(struct wr_lock *lock, int64_t deadline_ns);

void wr_lock_leave(struct wr_lock *lock);

/* In a forked child only: frees the lock, whichever thread held it. */
void wr_lock_reset(struct wr_lock *lock);

/* Releases the lock, sleeps until woken or deadline_ns, and takes the lock again. May return early, so callers
 * check their condition in a loop. */
void wr_condition_wait(struct wr_condition *condition, struct wr_lock *lock, int64_t deadline_ns);

/* The same for a caller that has blocked all signals: while it sleeps, its signal mask is `signals`. */
void wr_condition_wait_open(struct wr_condition *condition, struct wr_lock *lock, int64_t deadline_ns,
                            const sigset_t *signals);

/* Wakes all waiting threads. Caller holds the lock. No system call if no thread waits. */
void wr_condition_wake(struct wr_condition *condition);

#endif
