/* waiting: the calls that wait for samples of one lane (delivery "sync"), in the order of the samples. */
#ifndef WR_WAITING_H
#define WR_WAITING_H

#include <stdbool.h>
#include <stdint.h>

#include "ticket.h"

/* A call that waits for the samples before a position. */
struct wr_waiting_call {
    uint64_t sequence; /* one behind the last sample it waits for */
    struct wr_ticket ticket;
};

/* All zeros: empty. */
struct wr_waiting {
    struct wr_waiting_call *calls;
    uint32_t count, room;
    int told; /* the error by which calls come back at once; 0: they wait */
};

void wr_waiting_fini(struct wr_waiting *waiting);

/* Adds a call, for samples behind those of all others; a ticket without a desk is none. Answers it at once
 * where nobody waits, or without memory. */
void wr_waiting_add(struct wr_waiting *waiting, uint64_t sequence, struct wr_ticket ticket);

/* Answers the calls that wait for samples from position `first` to before `end`, and no others. */
void wr_waiting_answer(struct wr_waiting *waiting, uint64_t first, uint64_t end, int answer);

#endif
