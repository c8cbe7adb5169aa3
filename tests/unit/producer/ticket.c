#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>

#include <weir/weir.h>

#include "os/clock.h"
#include "text/common.h"
#include "producer/ticket.h"

#define PATIENCE .timeout = 60

enum { NO_ANSWER = -1000 };

static int read_answer(struct wr_ticket ticket)
{
    int answer;
    return wr_ticket_wait(ticket, 0, &answer) ? answer : NO_ANSWER;
}

Test(ticket, a_new_ticket_has_no_answer)
{
    struct wr_ticket_state desk = {0};
    cr_assert_eq(read_answer(wr_ticket_take(&desk)), NO_ANSWER);
}

Test(ticket, one_handler_answers)
{
    struct wr_ticket_state desk = {0};
    struct wr_ticket ticket = wr_ticket_take(&desk);
    wr_ticket_expect(ticket, 1);
    cr_assert_eq(read_answer(ticket), NO_ANSWER);
    wr_ticket_complete(ticket, 0);
    cr_assert_eq(read_answer(ticket), 0);
}

Test(ticket, all_handlers_have_to_answer)
{
    struct wr_ticket_state desk = {0};
    struct wr_ticket ticket = wr_ticket_take(&desk);
    wr_ticket_expect(ticket, 3);
    wr_ticket_complete(ticket, 0);
    wr_ticket_complete(ticket, 0);
    cr_assert_eq(read_answer(ticket), NO_ANSWER);
    wr_ticket_complete(ticket, 0);
    cr_assert_eq(read_answer(ticket), 0);
}

Test(ticket, where_no_handler_answers_the_call_goes_on)
{
    struct wr_ticket_state desk = {0};
    struct wr_ticket ticket = wr_ticket_take(&desk);
    wr_ticket_expect(ticket, 0);
    cr_assert_eq(read_answer(ticket), 0);
}

Test(ticket, an_error_of_any_handler_is_the_answer_whoever_comes_last)
{
    struct wr_ticket_state desk = {0};
    struct wr_ticket ticket = wr_ticket_take(&desk);
    wr_ticket_expect(ticket, 2);
    wr_ticket_complete(ticket, WEIR_ERR_FULL);
    wr_ticket_complete(ticket, 0);
    cr_assert_eq(read_answer(ticket), WEIR_ERR_FULL);
    ticket = wr_ticket_take(&desk);
    wr_ticket_expect(ticket, 2);
    wr_ticket_complete(ticket, 0);
    wr_ticket_complete(ticket, WEIR_ERR_DROPPED);
    cr_assert_eq(read_answer(ticket), WEIR_ERR_DROPPED);
}

Test(ticket, answers_beyond_those_expected_change_nothing)
{
    struct wr_ticket_state desk = {0};
    struct wr_ticket ticket = wr_ticket_take(&desk);
    wr_ticket_expect(ticket, 1);
    wr_ticket_complete(ticket, 0);
    wr_ticket_complete(ticket, WEIR_ERR_FULL);
    cr_assert_eq(read_answer(ticket), 0);
}

Test(ticket, an_answer_to_a_ticket_that_was_given_up_does_not_count_for_the_next)
{
    struct wr_ticket_state desk = {0};
    struct wr_ticket late = wr_ticket_take(&desk);
    wr_ticket_expect(late, 1);
    struct wr_ticket ticket = wr_ticket_take(&desk);
    wr_ticket_complete(late, WEIR_ERR_FULL);
    wr_ticket_expect(ticket, 1);
    wr_ticket_complete(late, WEIR_ERR_FULL);
    cr_assert_eq(read_answer(ticket), NO_ANSWER);
    wr_ticket_complete(ticket, 0);
    cr_assert_eq(read_answer(ticket), 0);
}

Test(ticket, an_expectation_of_a_ticket_that_was_given_up_does_not_count_for_the_next)
{
    struct wr_ticket_state desk = {0};
    struct wr_ticket late = wr_ticket_take(&desk);
    struct wr_ticket ticket = wr_ticket_take(&desk);
    wr_ticket_expect(late, 0);
    cr_assert_eq(read_answer(ticket), NO_ANSWER);
}

Test(ticket, numbers_begin_anew_after_the_last_one)
{
    struct wr_ticket_state desk = {.word = UINT64_C(0xffffffff) << 32};
    struct wr_ticket ticket = wr_ticket_take(&desk);
    cr_assert_eq(ticket.number, 0);
    wr_ticket_expect(ticket, 1);
    wr_ticket_complete(ticket, WEIR_ERR_DROPPED);
    cr_assert_eq(read_answer(ticket), WEIR_ERR_DROPPED);
}

Test(ticket, nobodys_ticket_may_be_answered)
{
    wr_ticket_complete((struct wr_ticket){0}, 0);
}

Test(ticket, waiting_ends_at_the_deadline, PATIENCE)
{
    struct wr_ticket_state desk = {0};
    struct wr_ticket ticket = wr_ticket_take(&desk);
    int answer;
    cr_assert_not(wr_ticket_wait(ticket, wr_clock_monotonic_ns() + WR_NS_PER_US, &answer));
}

struct other {
    struct wr_ticket ticket;
    _Atomic bool go;
};

static void *answer_later(void *argument)
{
    struct other *other = argument;
    while (!atomic_load(&other->go))
        sched_yield();
    wr_ticket_complete(other->ticket, WEIR_ERR_DROPPED);
    return NULL;
}

Test(ticket, the_last_answer_wakes_the_caller, PATIENCE)
{
    struct wr_ticket_state desk = {0};
    struct other other = {.ticket = wr_ticket_take(&desk)};
    pthread_t thread;
    int answer;
    wr_ticket_expect(other.ticket, 2);
    wr_ticket_complete(other.ticket, 0);
    pthread_create(&thread, NULL, answer_later, &other);
    atomic_store(&other.go, true);
    cr_assert(wr_ticket_wait(other.ticket, WR_NEVER, &answer));
    cr_assert_eq(answer, WEIR_ERR_DROPPED);
    pthread_join(thread, NULL);
}
