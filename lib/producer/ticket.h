/* ticket: a call that waits for handlers (delivery "sync").
 *
 * A thread has at most one ticket at a time, so its state is in the thread's producer: one word with the
 * ticket's number, how many handlers have not completed it yet, and the worst result so far. A handler that
 * completes a ticket after its call has timed out, and has perhaps taken a new ticket, sees another number and
 * does nothing.
 */
#ifndef WR_TICKET_H
#define WR_TICKET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* In memory that is never freed. */
struct wr_ticket_state {
    _Atomic uint64_t word;  /* number << 32 | left << 16 | -result */
    _Atomic uint32_t turn;  /* the caller waits on it */
    _Atomic uint32_t waits; /* 1: it sleeps, or is about to */
};

/* What handlers hold of a ticket. */
struct wr_ticket {
    struct wr_ticket_state *state; /* NULL: no call waits */
    uint32_t number;
};

/* [caller] Takes a new ticket, before the sample that carries its number to the dispatcher is published. */
struct wr_ticket wr_ticket_take(struct wr_ticket_state *state);

/* [dispatcher] Sets how many handlers are going to complete it; 0: the call returns 0. */
void wr_ticket_expect(struct wr_ticket ticket, uint32_t handlers);

/* [handler] result: 0 or a negative enum weir_error. */
void wr_ticket_complete(struct wr_ticket ticket, int result);

/* [caller] Waits until all have completed it. Returns false if not by deadline_ns. *result: 0, or the error of
 * one of them. */
bool wr_ticket_wait(struct wr_ticket ticket, int64_t deadline_ns, int *result);

#endif
