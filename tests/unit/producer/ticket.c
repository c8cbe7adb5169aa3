#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>

#include <weir/weir.h>

#include "os/clock.h"
#include "text/common.h"
#include "producer/ticket.h"

#define TEST_TIMEOUT .timeout = 60

enum { PENDING = -1000 };

static int read_result(struct wr_ticket ticket)
{
    int result;
    return wr_ticket_wait(ticket, 0, &result) ? result : PENDING;
}

Test(ticket, a_new_ticket_has_no_result)
{
    struct wr_ticket_state state = {0};
    cr_assert_eq(read_result(wr_ticket_take(&state)), PENDING);
}

Test(ticket, one_handler_completes_a_ticket)
{
    struct wr_ticket_state state = {0};
    struct wr_ticket ticket = wr_ticket_take(&state);
    wr_ticket_expect(ticket, 1);
    cr_assert_eq(read_result(ticket), PENDING);
    wr_ticket_complete(ticket, 0);
    cr_assert_eq(read_result(ticket), 0);
}

Test(ticket, a_ticket_waits_for_all_handlers)
{
    struct wr_ticket_state state = {0};
    struct wr_ticket ticket = wr_ticket_take(&state);
    wr_ticket_expect(ticket, 3);
    wr_ticket_complete(ticket, 0);
    wr_ticket_complete(ticket, 0);
    cr_assert_eq(read_result(ticket), PENDING);
    wr_ticket_complete(ticket, 0);
    cr_assert_eq(read_result(ticket), 0);
}

Test(ticket, a_ticket_without_handlers_completes_at_once)
{
    struct wr_ticket_state state = {0};
    struct wr_ticket ticket = wr_ticket_take(&state);
    wr_ticket_expect(ticket, 0);
    cr_assert_eq(read_result(ticket), 0);
}

Test(ticket, an_error_of_any_handler_is_the_result_in_any_order)
{
    struct wr_ticket_state state = {0};
    struct wr_ticket ticket = wr_ticket_take(&state);
    wr_ticket_expect(ticket, 2);
    wr_ticket_complete(ticket, WEIR_ERR_FULL);
    wr_ticket_complete(ticket, 0);
    cr_assert_eq(read_result(ticket), WEIR_ERR_FULL);
    ticket = wr_ticket_take(&state);
    wr_ticket_expect(ticket, 2);
    wr_ticket_complete(ticket, 0);
    wr_ticket_complete(ticket, WEIR_ERR_DROPPED);
    cr_assert_eq(read_result(ticket), WEIR_ERR_DROPPED);
}

Test(ticket, results_beyond_those_expected_are_ignored)
{
    struct wr_ticket_state state = {0};
    struct wr_ticket ticket = wr_ticket_take(&state);
    wr_ticket_expect(ticket, 1);
    wr_ticket_complete(ticket, 0);
    wr_ticket_complete(ticket, WEIR_ERR_FULL);
    cr_assert_eq(read_result(ticket), 0);
}

Test(ticket, a_result_for_an_abandoned_ticket_does_not_complete_the_next)
{
    struct wr_ticket_state state = {0};
    struct wr_ticket late = wr_ticket_take(&state);
    wr_ticket_expect(late, 1);
    struct wr_ticket ticket = wr_ticket_take(&state);
    wr_ticket_complete(late, WEIR_ERR_FULL);
    wr_ticket_expect(ticket, 1);
    wr_ticket_complete(late, WEIR_ERR_FULL);
    cr_assert_eq(read_result(ticket), PENDING);
    wr_ticket_complete(ticket, 0);
    cr_assert_eq(read_result(ticket), 0);
}

Test(ticket, an_expectation_of_an_abandoned_ticket_does_not_affect_the_next)
{
    struct wr_ticket_state state = {0};
    struct wr_ticket late = wr_ticket_take(&state);
    struct wr_ticket ticket = wr_ticket_take(&state);
    wr_ticket_expect(late, 0);
    cr_assert_eq(read_result(ticket), PENDING);
}

Test(ticket, numbers_wrap_around)
{
    struct wr_ticket_state state = {.word = UINT64_C(0xffffffff) << 32};
    struct wr_ticket ticket = wr_ticket_take(&state);
    cr_assert_eq(ticket.number, 0);
    wr_ticket_expect(ticket, 1);
    wr_ticket_complete(ticket, WEIR_ERR_DROPPED);
    cr_assert_eq(read_result(ticket), WEIR_ERR_DROPPED);
}

Test(ticket, completing_the_empty_ticket_does_nothing)
{
    wr_ticket_complete((struct wr_ticket){0}, 0);
}

Test(ticket, waiting_ends_at_the_deadline, TEST_TIMEOUT)
{
    struct wr_ticket_state state = {0};
    struct wr_ticket ticket = wr_ticket_take(&state);
    int result;
    cr_assert_not(wr_ticket_wait(ticket, wr_clock_monotonic_ns() + WR_NS_PER_US, &result));
}

struct other {
    struct wr_ticket ticket;
    _Atomic bool go;
};

static void *complete_later(void *argument)
{
    struct other *other = argument;
    while (!atomic_load(&other->go))
        sched_yield();
    wr_ticket_complete(other->ticket, WEIR_ERR_DROPPED);
    return NULL;
}

Test(ticket, the_last_result_wakes_the_caller, TEST_TIMEOUT)
{
    struct wr_ticket_state state = {0};
    struct other other = {.ticket = wr_ticket_take(&state)};
    pthread_t thread;
    int result;
    wr_ticket_expect(other.ticket, 2);
    wr_ticket_complete(other.ticket, 0);
    pthread_create(&thread, NULL, complete_later, &other);
    atomic_store(&other.go, true);
    cr_assert(wr_ticket_wait(other.ticket, WR_NEVER, &result));
    cr_assert_eq(result, WEIR_ERR_DROPPED);
    pthread_join(thread, NULL);
}
