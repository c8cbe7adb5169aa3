/* ticket: a call that waits for handlers to answer (delivery "sync").
 *
 * A thread has at most one ticket at a time, so it lies in the thread's producer: one word with the ticket's
 * number, how many handlers have yet to answer, and the worst answer so far. Handlers that answer too late,
 * when the caller has given up and perhaps taken a new ticket, notice it by the number. */
#ifndef WR_TICKET_H
#define WR_TICKET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Where the answers go; in memory that is never freed. */
struct wr_ticket_desk {
    _Atomic uint64_t word; /* number << 32 | left << 16 | answer */
    _Atomic uint32_t turn; /* slept on by the caller */
};

/* A claim to one answer, as handlers hold it. */
struct wr_ticket {
    struct wr_ticket_desk *desk; /* NULL: nobody waits */
    uint32_t number;
};

/* [caller] Takes a new ticket, before the sample is published, which carries its number to the dispatcher. */
struct wr_ticket wr_ticket_take(struct wr_ticket_desk *desk);

/* [dispatcher] Says how many handlers will answer; 0: the caller goes on with answer 0. */
void wr_ticket_expect(struct wr_ticket ticket, uint32_t handlers);

/* [handler] Answers with 0 or a negative enum weir_error. */
void wr_ticket_answer(struct wr_ticket ticket, int answer);

/* [caller] Waits until all have answered; false: not by deadline_ns. *answer: 0, or the error that any of them
 * gave. */
bool wr_ticket_wait(struct wr_ticket ticket, int64_t deadline_ns, int *answer);

#endif
