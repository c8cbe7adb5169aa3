/* Calls that wait, and often give up; handlers that answer, and often too late. Whoever gets an answer gets the
 * one to his own question. */

#include <pthread.h>
#include <sched.h>

#include "../support/plain.h"
#include "os/clock.h"
#include "text/common.h"
#include "producer/ticket.h"

enum { CALLERS = 3, HANDLERS = 3, CALLS = 20000 };

/* What handlers answer to a ticket depends on its number only: 0, or an error of one of them. */
static int answer_to(uint32_t number, unsigned handler)
{
    return number % 3 == 0 && handler == number % HANDLERS ? -(int)(1 + number % 14) : 0;
}

static int expected_answer(uint32_t number)
{
    return number % 3 == 0 ? -(int)(1 + number % 14) : 0;
}

/* A caller, its questions on their way to the handlers, and how far each handler has come. */
struct caller {
    struct wr_ticket_state desk;
    _Atomic uint64_t asked;
    struct wr_ticket questions[CALLS];
    uint64_t answered, given_up;
};

static struct caller callers[CALLERS];

static void *call(void *argument)
{
    struct caller *caller = argument;
    uint64_t random = (uintptr_t)caller;
    for (uint64_t i = 0; i < CALLS; i++) {
        struct wr_ticket ticket = wr_ticket_take(&caller->desk);
        bool patient = plain_draw(&random, 4) != 0;
        int answer = 1;
        wr_ticket_expect(ticket, HANDLERS);
        caller->questions[i] = ticket;
        atomic_store_explicit(&caller->asked, i + 1, memory_order_release);
        if (wr_ticket_wait(ticket, patient ? WR_NEVER : wr_clock_monotonic_ns() + 2000, &answer)) {
            PLAIN_CHECK(answer == expected_answer(ticket.number), "the answer to another question");
            caller->answered++;
        } else {
            PLAIN_CHECK(!patient);
            caller->given_up++;
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
            uint64_t asked = atomic_load_explicit(&callers[i].asked, memory_order_acquire);
            for (; next[i] < asked; next[i]++) {
                struct wr_ticket question = callers[i].questions[next[i]];
                if (plain_draw(&random, 8) == 0)
                    sched_yield();
                wr_ticket_complete(question, answer_to(question.number, number));
            }
            all &= next[i] == CALLS;
        }
        sched_yield();
    }
    return NULL;
}

/* ---- Answers that come while the caller falls asleep ----------------------------------------- */

static struct caller racer;

static void *answer_at_once(void *argument)
{
    uint64_t random = 3;
    (void)argument;
    for (uint64_t next = 0; next < CALLS; next++) {
        while (atomic_load_explicit(&racer.asked, memory_order_acquire) == next)
            wr_clock_relax();
        for (uint32_t spin = plain_draw(&random, 30); spin; spin--)
            wr_clock_relax();
        wr_ticket_complete(racer.questions[next], 0);
    }
    return NULL;
}

static void race(void)
{
    pthread_t handler;
    PLAIN_CHECK(pthread_create(&handler, NULL, answer_at_once, NULL) == 0);
    for (uint64_t i = 0; i < CALLS; i++) {
        struct wr_ticket ticket = wr_ticket_take(&racer.desk);
        int answer;
        wr_ticket_expect(ticket, 1);
        racer.questions[i] = ticket;
        atomic_store_explicit(&racer.asked, i + 1, memory_order_release);
        PLAIN_CHECK(wr_ticket_wait(ticket, WR_NEVER, &answer) && answer == 0);
    }
    pthread_join(handler, NULL);
}

/* ---- Many callers, many handlers ------------------------------------------------------------- */

static void call_and_give_up(void)
{
    pthread_t call_threads[CALLERS], handle_threads[HANDLERS];
    uint64_t given_up = 0;
    for (uintptr_t i = 0; i < HANDLERS; i++)
        PLAIN_CHECK(pthread_create(&handle_threads[i], NULL, handle, (void *)i) == 0);
    for (int i = 0; i < CALLERS; i++)
        PLAIN_CHECK(pthread_create(&call_threads[i], NULL, call, &callers[i]) == 0);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(call_threads[i], NULL);
        PLAIN_CHECK(callers[i].answered + callers[i].given_up == CALLS);
        given_up += callers[i].given_up;
    }
    for (int i = 0; i < HANDLERS; i++)
        pthread_join(handle_threads[i], NULL);
    printf("%llu of %d calls given up\n", (unsigned long long)given_up, CALLERS * CALLS);
}

int main(void)
{
    plain_hang_no_longer_than(120);
    call_and_give_up();
    race();
    return 0;
}
