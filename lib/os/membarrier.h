/* membarrier: one side's fence paid by the other.
 *
 * Two threads that each write a word of their own and then read the other's need a full fence between both
 * steps, on both sides, lest both miss the other's write. With membarrier(2) the rare side's call stands for
 * the frequent side's fence, which then only has to keep the compiler from swapping its two steps. */
#ifndef WR_MEMBARRIER_H
#define WR_MEMBARRIER_H

#include <stdbool.h>

/* Once a process, before any use; forked children inherit it. false: the kernel has none, and both sides need
 * real fences. */
bool wr_membarrier_register(void);

/* When this returns, every other thread of the process has executed a full fence since the call; does nothing
 * where the kernel has none. */
void wr_membarrier(void);

#endif
