/* futex: sleeping on a word and waking its sleepers. Both are safe in signal handlers and after fork. */
#ifndef WR_FUTEX_H
#define WR_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/* Sleeps while *word is `expected`, until woken or timeout_ns is over (negative: at once; WR_NEVER: never). May
 * return early. */
void wr_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns);

/* Wakes up to `count` sleepers. */
void wr_futex_wake(_Atomic uint32_t *word, int count);

#endif
