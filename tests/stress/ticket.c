/* ticket: calls that wait and often time out, and handlers that often complete too late. Each call that gets a
 * result gets its own. */

#include <pthread.h>
#include <sched.h>

#include "../support/plain.h"
#include "os/clock.h"
#include "text/common.h"
#include "producer/ticket.h"

enum { CALLERS = 3, HANDLERS = 3, CALLS = 20000 };

/* A handler's result for a ticket depends only on its number: 0, or an error from one handler. */
static int result_for(uint32_t number, unsigned handler)
{
    return number % 3 == 0 && handler == number % HANDLERS ? -(int)(1 + number % 14) : 0;
}

static int expected_result(uint32_t number)
{
    return number % 3 == 0 ? -(int)(1 + number % 14) : 0;
}

/* A caller, its tickets for the handlers, and how many it has issued. */
struct caller {
    struct wr_ticket_state desk;
    _Atomic uint64_t issued;
    struct wr_ticket tickets[CALLS];
    uint64_t completed, timed_out;
};

static struct caller callers[CALLERS];

static void *call(void *argument)
{
    struct caller *caller = argument;
    uint64_t random = (uintptr_t)caller;
    for (uint64_t i = 0; i < CALLS; i++) {
        struct wr_ticket ticket = wr_ticket_take(&caller->desk);
        bool waits = plain_draw(&random, 4) != 0;
        int result = 1;
        wr_ticket_expect(ticket, HANDLERS);
        caller->tickets[i] = ticket;
        atomic_store_explicit(&caller->issued, i + 1, memory_order_release);
        if (wr_ticket_wait(ticket, waits ? WR_NEVER : wr_clock_monotonic_ns() + 2000, &result)) {
            PLAIN_CHECK(result == expected_result(ticket.number), "the result of another ticket");
            caller->completed++;
        } else {
            PLAIN_CHECK(!waits);
            caller->timed_out++;
        }
    }
    return NULL;
}

static void *handle(void *argument)
{
    unsigned number = (unsigned)(uintptr_t)argument;
    uint64_t next[CALLERS] = {0}, random = number + 1;
    bool all = false;
    while (!all) {
        all = true;
        for (unsigned i = 0; i < CALLERS; i++) {
            uint64_t issued = atomic_load_explicit(&callers[i].issued, memory_order_acquire);
            for (; next[i] < issued; next[i]++) {
                struct wr_ticket handled = callers[i].tickets[next[i]];
                if (plain_draw(&random, 8) == 0)
                    sched_yield();
                wr_ticket_complete(handled, result_for(handled.number, number));
            }
            all &= next[i] == CALLS;
        }
        sched_yield();
    }
    return NULL;
}

/* ---- Results that arrive while the caller falls asleep --------------------------------------- */

static struct caller racer;

static void *settle_immediately(void *argument)
{
    uint64_t random = 3;
    (void)argument;
    for (uint64_t next = 0; next < CALLS; next++) {
        for (unsigned spins = 1; atomic_load_explicit(&racer.issued, memory_order_acquire) == next; spins++)
            spins % 1000 ? wr_clock_relax() : (void)sched_yield();
        for (uint32_t spin = plain_draw(&random, 30); spin; spin--)
            wr_clock_relax();
        wr_ticket_complete(racer.tickets[next], 0);
    }
    return NULL;
}

static void race(void)
{
    pthread_t handler;
    PLAIN_CHECK(pthread_create(&handler, NULL, settle_immediately, NULL) == 0);
    for (uint64_t i = 0; i < CALLS; i++) {
        struct wr_ticket ticket = wr_ticket_take(&racer.desk);
        int result;
        wr_ticket_expect(ticket, 1);
        racer.tickets[i] = ticket;
        atomic_store_explicit(&racer.issued, i + 1, memory_order_release);
        PLAIN_CHECK(wr_ticket_wait(ticket, WR_NEVER, &result) && result == 0);
    }
    pthread_join(handler, NULL);
}

/* ---- Many callers, many handlers ------------------------------------------------------------- */

static void call_with_timeouts(void)
{
    pthread_t call_threads[CALLERS], handle_threads[HANDLERS];
    uint64_t timed_out = 0;
    for (uintptr_t i = 0; i < HANDLERS; i++)
        PLAIN_CHECK(pthread_create(&handle_threads[i], NULL, handle, (void *)i) == 0);
    for (int i = 0; i < CALLERS; i++)
        PLAIN_CHECK(pthread_create(&call_threads[i], NULL, call, &callers[i]) == 0);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(call_threads[i], NULL);
        PLAIN_CHECK(callers[i].completed + callers[i].timed_out == CALLS);
        timed_out += callers[i].timed_out;
    }
    for (int i = 0; i < HANDLERS; i++)
        pthread_join(handle_threads[i], NULL);
    printf("%llu of %d calls timed out\n", (unsigned long long)timed_out, CALLERS * CALLS);
}

int main(void)
{
    plain_hang_no_longer_than(120);
    call_with_timeouts();
    race();
    return 0;
}
