#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>

#include "os/clock.h"
#include "text/common.h"
#include "os/futex.h"
#include "os/lock.h"

enum { THREADS = 4, TURNS = 5000 };

/* A call that does not return fails the test instead of blocking it. */
#define TEST_TIMEOUT .timeout = 60

/* ---- futex ----------------------------------------------------------------------------------- */

Test(futex, waiting_on_a_changed_word_returns_at_once, TEST_TIMEOUT)
{
    _Atomic uint32_t word = 1;
    wr_futex_wait(&word, 0, WR_NEVER);
}

Test(futex, waiting_with_a_timeout_of_zero_or_less_returns_at_once, TEST_TIMEOUT)
{
    _Atomic uint32_t word = 0;
    wr_futex_wait(&word, 0, 0);
    wr_futex_wait(&word, 0, -1);
    wr_futex_wait(&word, 0, INT64_MIN);
}

Test(futex, errno_is_preserved)
{
    _Atomic uint32_t word = 0;
    errno = 77;
    wr_futex_wait(&word, 1, WR_NEVER); /* EAGAIN inside */
    wr_futex_wait(&word, 0, 1);        /* ETIMEDOUT inside */
    wr_futex_wake(&word, 1);
    cr_assert_eq(errno, 77);
}

/* ---- lock ------------------------------------------------------------------------------------ */

Test(lock, all_zeros_is_a_free_lock)
{
    struct wr_lock lock = {0};
    cr_assert(wr_lock_enter_by(&lock, 0));
    wr_lock_leave(&lock);
    cr_assert(wr_lock_enter_by(&lock, 0));
}

Test(lock, acquiring_a_held_lock_fails_at_the_deadline, TEST_TIMEOUT)
{
    struct wr_lock lock = {0};
    wr_lock_enter(&lock);
    cr_assert_not(wr_lock_enter_by(&lock, 0));
    cr_assert_not(wr_lock_enter_by(&lock, wr_clock_monotonic_ns() + WR_NS_PER_US));
}

Test(lock, a_lock_can_be_released_and_acquired_after_a_timed_out_attempt, TEST_TIMEOUT)
{
    struct wr_lock lock = {0};
    wr_lock_enter(&lock);
    cr_assert_not(wr_lock_enter_by(&lock, 0));
    wr_lock_leave(&lock);
    cr_assert(wr_lock_enter_by(&lock, 0));
    wr_lock_leave(&lock);
    wr_lock_enter(&lock);
}

Test(lock, a_reset_lock_is_free_even_if_another_thread_held_it)
{
    struct wr_lock lock = {0};
    wr_lock_enter(&lock);
    wr_lock_enter_by(&lock, 0);
    wr_lock_reset(&lock);
    cr_assert(wr_lock_enter_by(&lock, 0));
}

struct counting {
    struct wr_lock lock;
    uint64_t count; /* under the lock, and not atomic */
};

static void *count(void *argument)
{
    struct counting *counting = argument;
    for (int i = 0; i < TURNS; i++) {
        wr_lock_enter(&counting->lock);
        counting->count++;
        wr_lock_leave(&counting->lock);
    }
    return NULL;
}

Test(lock, threads_exclude_each_other, TEST_TIMEOUT)
{
    struct counting counting = {0};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, count, &counting);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(counting.count, THREADS * TURNS);
}

/* ---- condition ------------------------------------------------------------------------------- */

Test(condition, a_wait_that_times_out_returns_with_the_lock_held, TEST_TIMEOUT)
{
    struct wr_lock lock = {0};
    struct wr_condition condition = {0};
    wr_lock_enter(&lock);
    wr_condition_wait(&condition, &lock, 0);
    wr_condition_wait(&condition, &lock, wr_clock_monotonic_ns() + WR_NS_PER_US);
    cr_assert_not(wr_lock_enter_by(&lock, 0));
    cr_assert_eq(condition.waiters, 0);
}

Test(condition, waking_without_waiters_does_nothing)
{
    struct wr_lock lock = {0};
    struct wr_condition condition = {0};
    wr_lock_enter(&lock);
    wr_condition_wake(&condition);
    cr_assert_eq(condition.turn, 0);
}

struct meeting {
    struct wr_lock lock;
    struct wr_condition start, arrival;
    bool started;
    unsigned waiting, woken;
};

static void *wait_for_start(void *argument)
{
    struct meeting *meeting = argument;
    wr_lock_enter(&meeting->lock);
    meeting->waiting++;
    wr_condition_wake(&meeting->arrival);
    while (!meeting->started)
        wr_condition_wait(&meeting->start, &meeting->lock, WR_NEVER);
    meeting->woken++;
    wr_lock_leave(&meeting->lock);
    return NULL;
}

Test(condition, waking_wakes_all_waiters, TEST_TIMEOUT)
{
    struct meeting meeting = {0};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, wait_for_start, &meeting);
    wr_lock_enter(&meeting.lock);
    while (meeting.waiting < THREADS)
        wr_condition_wait(&meeting.arrival, &meeting.lock, WR_NEVER);
    cr_assert_eq(meeting.woken, 0);
    meeting.started = true;
    wr_condition_wake(&meeting.start);
    wr_lock_leave(&meeting.lock);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(meeting.woken, THREADS);
}

struct turns {
    struct wr_lock lock;
    struct wr_condition change;
    unsigned turn;
};

/* Two threads alternate: a lost wake-up would leave both asleep. */
static void take_turns(struct turns *turns, unsigned parity)
{
    wr_lock_enter(&turns->lock);
    for (int i = 0; i < TURNS; i++) {
        while (turns->turn % 2 != parity)
            wr_condition_wait(&turns->change, &turns->lock, WR_NEVER);
        turns->turn++;
        wr_condition_wake(&turns->change);
    }
    wr_lock_leave(&turns->lock);
}

static void *take_odd_turns(void *argument)
{
    take_turns(argument, 1);
    return NULL;
}

Test(condition, no_wake_up_is_lost, TEST_TIMEOUT)
{
    struct turns turns = {0};
    pthread_t other;
    pthread_create(&other, NULL, take_odd_turns, &turns);
    take_turns(&turns, 0);
    pthread_join(other, NULL);
    cr_assert_eq(turns.turn, 2 * TURNS);
}
