#include "membarrier.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static long call(int command)
{
    int saved = errno;
    long result = syscall(SYS_membarrier, command, 0, 0);
    errno = saved;
    return result;
}

bool wr_membarrier_register(void)
{
    return call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

void wr_membarrier(void)
{
    atomic_thread_fence(memory_order_seq_cst);
    call(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}
