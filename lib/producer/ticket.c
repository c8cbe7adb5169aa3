#include "producer/ticket.h"

#include "os/clock.h"
#include "text/common.h"
#include "os/futex.h"

enum { UNKNOWN = 0xffff }; /* left: the dispatcher has not seen the sample yet */

static uint64_t pack(uint32_t number, uint32_t left, int answer)
{
    return (uint64_t)number << 32 | (uint64_t)left << 16 | (uint16_t)-answer;
}

static uint32_t number_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static uint32_t left_of(uint64_t word)
{
    return word >> 16 & 0xffff;
}

static int answer_of(uint64_t word)
{
    return -(int)(word & 0xffff);
}

struct wr_ticket wr_ticket_take(struct wr_ticket_desk *desk)
{
    uint32_t number = number_of(atomic_load_explicit(&desk->word, memory_order_relaxed)) + 1;
    /* relaxed: the dispatcher sees it by the publishing of the sample, which comes after */
    atomic_store_explicit(&desk->word, pack(number, UNKNOWN, 0), memory_order_relaxed);
    return (struct wr_ticket){desk, number};
}

/* Changes the word, unless the ticket is no longer the current one. */
static void change(struct wr_ticket ticket, uint32_t expected, bool is_answer, int answer)
{
    uint64_t word = atomic_load_explicit(&ticket.desk->word, memory_order_relaxed), changed;
    do {
        if (number_of(word) != ticket.number || left_of(word) == 0)
            return;
        uint32_t left = is_answer ? left_of(word) - 1 : expected;
        changed = pack(ticket.number, left, answer ? answer : answer_of(word));
        /* release: pairs with the acquire in wr_ticket_wait */
    } while (!atomic_compare_exchange_weak_explicit(&ticket.desk->word, &word, changed, memory_order_release,
                                                    memory_order_relaxed));
    if (left_of(changed))
        return;
    atomic_fetch_add_explicit(&ticket.desk->turn, 1, memory_order_release);
    wr_futex_wake(&ticket.desk->turn, 1);
}

void wr_ticket_expect(struct wr_ticket ticket, uint32_t handlers)
{
    change(ticket, handlers < UNKNOWN ? handlers : UNKNOWN - 1, false, 0);
}

void wr_ticket_answer(struct wr_ticket ticket, int answer)
{
    if (ticket.desk)
        change(ticket, 0, true, answer);
}

bool wr_ticket_wait(struct wr_ticket ticket, int64_t deadline_ns, int *answer)
{
    for (;;) {
        uint32_t turn = atomic_load_explicit(&ticket.desk->turn, memory_order_acquire);
        uint64_t word = atomic_load_explicit(&ticket.desk->word, memory_order_acquire);
        if (left_of(word) == 0) {
            *answer = answer_of(word);
            return true;
        }
        int64_t left_ns = deadline_ns == WR_NEVER ? WR_NEVER : deadline_ns - wr_clock_monotonic_ns();
        if (left_ns <= 0)
            return false;
        wr_futex_wait(&ticket.desk->turn, turn, left_ns);
    }
}
