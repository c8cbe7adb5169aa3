/* wakeup: lets the dispatcher sleep, and other threads wake it. Sending is safe in signal handlers. */
#ifndef WR_WAKEUP_H
#define WR_WAKEUP_H

#include <stdatomic.h>
#include <stdint.h>

/* All zeros: no thread sleeps, nothing was sent. */
struct wr_wakeup {
    _Atomic uint32_t asleep; /* 1: the sleeper sleeps, or is about to */
    _Atomic uint32_t sent;   /* 1: something was sent since the sleeper last woke up */
};

/* Wakes the sleeper, or keeps it from going to sleep. Makes a system call only if it sleeps. */
void wr_wakeup_send(struct wr_wakeup *wakeup);

/* Called by the sleeper before it looks for work for the last time: a thread that publishes work after that
 * look wakes it. */
void wr_wakeup_prepare(struct wr_wakeup *wakeup);

/* Sleeps until something is sent, or was since prepare, or until timeout_ns has passed. timeout_ns: 0 does not
 * sleep, WR_NEVER has no limit. */
void wr_wakeup_wait(struct wr_wakeup *wakeup, int64_t timeout_ns);

#endif
