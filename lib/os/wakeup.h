/* wakeup: what the dispatcher sleeps on, and how others wake it. Ringing is safe in signal handlers. */
#ifndef WR_WAKEUP_H
#define WR_WAKEUP_H

#include <stdatomic.h>
#include <stdint.h>

/* All zeros: nobody sleeps, nothing has rung. */
struct wr_wakeup {
    _Atomic uint32_t asleep; /* 1: the sleeper sleeps, or is about to */
    _Atomic uint32_t rung;   /* since it last woke up */
};

/* Wakes the sleeper, or keeps it from falling asleep. A system call only when it sleeps. */
void wr_wakeup_send(struct wr_wakeup *wakeup);

/* Says that the sleeper is about to look for work for the last time before it sleeps: whoever brings work after
 * that look rings. */
void wr_wakeup_prepare(struct wr_wakeup *wakeup);

/* Sleeps until rung since prepare, or until timeout_ns is over (0: not at all; WR_NEVER: no limit). */
void wr_wakeup_wait(struct wr_wakeup *wakeup, int64_t timeout_ns);

#endif
