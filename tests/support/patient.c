/* patient: the core's waits have timeouts, so that a lost wake-up only costs time. With this file, linked with
 * -Wl,--wrap=wr_futex_wait, all but short waits have no timeout: a lost wake-up hangs the test. */
#include "text/common.h"
#include "os/futex.h"

enum { LONGEST_NAP_MS = 20 };

void __real_wr_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns);
void __wrap_wr_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns);

void __wrap_wr_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
    __real_wr_futex_wait(word, expected, timeout_ns > LONGEST_NAP_MS * WR_NS_PER_MS ? WR_NEVER : timeout_ns);
}
