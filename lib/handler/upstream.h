/* upstream: the processes whose values come to this one, so that a link that would bring values back to where
 * they come from is recognised. One set for the process. */
#ifndef WR_UPSTREAM_H
#define WR_UPSTREAM_H

#include <stddef.h>
#include <stdint.h>

#include <weir/host.h>

/* The service upstream/1. */
const weir_upstream *wr_upstream_service(void);

/* In a forked child, which receives nothing. */
void wr_upstream_after_fork(void);

#endif
