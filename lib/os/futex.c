#include "os/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "text/common.h"

void wr_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
    if (timeout_ns <= 0)
        return;
    int saved = errno;
    struct timespec timeout = {timeout_ns / WR_NS_PER_S, timeout_ns % WR_NS_PER_S};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout_ns == WR_NEVER ? NULL : &timeout, NULL, 0);
    errno = saved;
}

void wr_futex_wake(_Atomic uint32_t *word, int count)
{
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
    errno = saved;
}
