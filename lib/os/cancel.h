/* cancel: keeps the calling thread from being cancelled (pthread_cancel) while it is inside weir. A thread that
 * ended there would leave locks taken, signals blocked, and work half done that other threads wait for. */
#ifndef WR_CANCEL_H
#define WR_CANCEL_H

#include <pthread.h>

/* Returns the state to restore. Safe in signal handlers. */
static inline int wr_cancel_disable(void)
{
    int before = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

/* Not a cancellation point: a cancellation that is pending takes effect at the caller's next one. */
static inline void wr_cancel_restore(const int *before)
{
    pthread_setcancelstate(*before, NULL);
}

/* Declares a guard: from here to the end of the block the thread is not cancelled. Not needed where there are
 * only accesses to memory, clocks, futexes and locks, as on the fast path: these are not cancellation points.
 */
#define WR_CANCEL_DISABLED                                                                                     \
    __attribute__((cleanup(wr_cancel_restore), unused)) const int wr_cancel_before = wr_cancel_disable()

#endif
