/* waiting: the calls that wait for samples of one lane (delivery "sync"), in the order of the samples. */
#ifndef WR_SYNC_WAITERS_H
#define WR_SYNC_WAITERS_H

#include <stdbool.h>
#include <stdint.h>

#include "producer/ticket.h"

/* A call that waits for the samples before a position. */
struct wr_sync_waiters_call {
    uint64_t sequence; /* one behind the last sample it waits for */
    struct wr_ticket ticket;
};

/* All zeros: empty. */
struct wr_sync_waiters {
    struct wr_sync_waiters_call *calls;
    uint32_t count, room;
    int told; /* the error by which calls come back at once; 0: they wait */
};

void wr_sync_waiters_fini(struct wr_sync_waiters *waiting);

/* Adds a call, for samples behind those of all others; a ticket without a desk is none. Answers it at once
 * where nobody waits, or without memory. */
void wr_sync_waiters_add(struct wr_sync_waiters *waiting, uint64_t sequence, struct wr_ticket ticket);

/* Answers the calls that wait for samples from position `first` to before `end`, and no others. */
void wr_sync_waiters_answer(struct wr_sync_waiters *waiting, uint64_t first, uint64_t end, int answer);

#endif
