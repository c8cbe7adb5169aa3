/* sync_waiters: the calls that wait for samples of one lane (delivery "sync"), in the order of the samples. */
#ifndef WR_SYNC_WAITERS_H
#define WR_SYNC_WAITERS_H

#include <stdbool.h>
#include <stdint.h>

#include "producer/ticket.h"

struct wr_sync_call {
    uint64_t sequence; /* it waits for the samples before this position */
    struct wr_ticket ticket;
};

/* All zeros: empty. */
struct wr_sync_waiters {
    struct wr_sync_call *calls;
    uint32_t count, room;
    int error; /* calls fail with it at once; 0: they wait */
};

void wr_sync_waiters_fini(struct wr_sync_waiters *waiters);

/* Adds a call, for samples behind those of all others. Ignores a ticket without a state. Completes the call at
 * once if an error is set, or if out of memory. */
void wr_sync_waiters_add(struct wr_sync_waiters *waiters, uint64_t sequence, struct wr_ticket ticket);

/* Completes the calls that wait for samples from position `first` to before `end`, and no others. */
void wr_sync_waiters_complete(struct wr_sync_waiters *waiters, uint64_t first, uint64_t end, int result);

/* Completes all, and those that are added, until it is called with 0. */
void wr_sync_waiters_fail(struct wr_sync_waiters *waiters, int error);

#endif
