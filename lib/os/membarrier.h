/* membarrier: replaces the fence of a frequent operation by a system call of a rare one.
 *
 * Two threads that each write their own word and then read the other's both need a full fence in between, or
 * each may miss the other's write. With membarrier(2), a call on the rare side replaces the fence on the
 * frequent side, where only the compiler must be kept from reordering the two accesses. */
#ifndef WR_MEMBARRIER_H
#define WR_MEMBARRIER_H

#include <stdbool.h>

/* To be called once per process before use; forked children inherit it. Returns false if the kernel does not
 * support it: then both sides need real fences. */
bool wr_membarrier_register(void);

/* When this returns, every other thread of the process has executed a full fence since the call. Without kernel
 * support it does nothing. */
void wr_membarrier(void);

#endif
