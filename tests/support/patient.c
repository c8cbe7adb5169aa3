/* patient: the core's waits have limits, so that a wake-up which got lost costs time and nothing more. Under
 * this one, linked with -Wl,--wrap=wr_futex_wait, all but naps last for ever: what is not woken hangs, and is
 * seen. */
#include "text/common.h"
#include "os/futex.h"

enum { LONGEST_NAP_MS = 20 };

void __real_wr_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns);
void __wrap_wr_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns);

void __wrap_wr_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
    __real_wr_futex_wait(word, expected, timeout_ns > LONGEST_NAP_MS * WR_NS_PER_MS ? WR_NEVER : timeout_ns);
}
