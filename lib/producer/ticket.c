#include "producer/ticket.h"

#include "os/clock.h"
#include "text/common.h"
#include "os/futex.h"

enum { UNKNOWN = 0xffff }; /* `left` before the dispatcher has seen the sample */

static uint64_t pack(uint32_t number, uint32_t left, int result)
{
    return (uint64_t)number << 32 | (uint64_t)left << 16 | (uint16_t)-result;
}

static uint32_t number_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static uint32_t left_of(uint64_t word)
{
    return word >> 16 & 0xffff;
}

static int result_of(uint64_t word)
{
    return -(int)(word & 0xffff);
}

struct wr_ticket wr_ticket_take(struct wr_ticket_state *state)
{
    uint32_t number = number_of(atomic_load_explicit(&state->word, memory_order_relaxed)) + 1;
    /* relaxed: published to the dispatcher by the release store that publishes the sample, which follows */
    atomic_store_explicit(&state->word, pack(number, UNKNOWN, 0), memory_order_relaxed);
    return (struct wr_ticket){state, number};
}

/* Changes the word, unless the ticket is not the current one, or is completed. */
static void change(struct wr_ticket ticket, uint32_t expected, bool is_result, int result)
{
    uint64_t word = atomic_load_explicit(&ticket.state->word, memory_order_relaxed), changed;
    do {
        if (number_of(word) != ticket.number || left_of(word) == 0)
            return;
        uint32_t left = is_result ? left_of(word) - 1 : expected;
        changed = pack(ticket.number, left, result ? result : result_of(word));
        /* sequentially consistent, as the load of `waits` is: see wr_ticket_wait. The release in it pairs with
         * the acquire there */
    } while (!atomic_compare_exchange_weak(&ticket.state->word, &word, changed));
    if (left_of(changed))
        return;
    atomic_fetch_add(&ticket.state->turn, 1);
    if (atomic_load(&ticket.state->waits)) /* not if the caller itself has completed it */
        wr_futex_wake(&ticket.state->turn, 1);
}

void wr_ticket_expect(struct wr_ticket ticket, uint32_t handlers)
{
    change(ticket, handlers < UNKNOWN ? handlers : UNKNOWN - 1, false, 0);
}

void wr_ticket_complete(struct wr_ticket ticket, int result)
{
    if (ticket.state)
        change(ticket, 0, true, result);
}

bool wr_ticket_wait(struct wr_ticket ticket, int64_t deadline_ns, int *result)
{
    for (;;) {
        uint32_t turn = atomic_load_explicit(&ticket.state->turn, memory_order_acquire);
        uint64_t word = atomic_load_explicit(&ticket.state->word, memory_order_acquire);
        if (left_of(word) == 0) {
            *result = result_of(word);
            return true;
        }
        int64_t left_ns = deadline_ns == WR_NEVER ? WR_NEVER : deadline_ns - wr_clock_monotonic_ns();
        if (left_ns <= 0)
            return false;
        /* stores `waits` and then loads the word; change() stores the word and then loads `waits`: one of them
         * sees the other's store */
        atomic_store(&ticket.state->waits, 1);
        if (left_of(atomic_load(&ticket.state->word)))
            wr_futex_wait(&ticket.state->turn, turn, left_ns);
        atomic_store(&ticket.state->waits, 0);
    }
}
