/* futex: sleeps on a word, and wakes its sleepers. Safe in signal handlers and after fork. */
#ifndef WR_FUTEX_H
#define WR_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/* Sleeps while *word is `expected`, until woken or timeout_ns has passed. timeout_ns: WR_NEVER for no timeout;
 * 0 or negative returns at once. May return early. */
void wr_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns);

/* Wakes up to `count` sleepers. */
void wr_futex_wake(_Atomic uint32_t *word, int count);

#endif
