/* fenced: simulates a kernel without membarrier(2), for programs linked with -Wl,--wrap=wr_membarrier and
 * -Wl,--wrap=wr_membarrier_register: both sides then execute a full fence. */
#include <stdatomic.h>

#include "os/membarrier.h"

bool __wrap_wr_membarrier_register(void);
void __wrap_wr_membarrier(void);

bool __wrap_wr_membarrier_register(void)
{
    return false;
}

void __wrap_wr_membarrier(void)
{
    atomic_thread_fence(memory_order_seq_cst);
}
