#include "os/membarrier.h"

#include <errno.h>
#include <linux/membarrier.h>
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
    call(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}
