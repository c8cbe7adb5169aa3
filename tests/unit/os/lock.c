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

/* What ought to come back does not: the test fails instead of hanging. */
#define PATIENCE .timeout = 60

/* ---- futex ----------------------------------------------------------------------------------- */

Test(futex, waiting_for_a_word_that_has_changed_ends_at_once, PATIENCE)
{
    _Atomic uint32_t word = 1;
    wr_futex_wait(&word, 0, WR_NEVER);
}

Test(futex, waiting_for_no_time_or_less_ends_at_once, PATIENCE)
{
    _Atomic uint32_t word = 0;
    wr_futex_wait(&word, 0, 0);
    wr_futex_wait(&word, 0, -1);
    wr_futex_wait(&word, 0, INT64_MIN);
}

Test(futex, errno_is_the_callers)
{
    _Atomic uint32_t word = 0;
    errno = 77;
    wr_futex_wait(&word, 1, WR_NEVER); /* EAGAIN inside */
    wr_futex_wait(&word, 0, 1);        /* ETIMEDOUT inside */
    wr_futex_wake(&word, 1);
    cr_assert_eq(errno, 77);
}

/* ---- lock ------------------------------------------------------------------------------------ */

Test(lock, zeros_are_a_free_lock)
{
    struct wr_lock lock = {0};
    cr_assert(wr_lock_enter_by(&lock, 0));
    wr_lock_leave(&lock);
    cr_assert(wr_lock_enter_by(&lock, 0));
}

Test(lock, a_held_lock_is_given_up_at_the_deadline, PATIENCE)
{
    struct wr_lock lock = {0};
    wr_lock_enter(&lock);
    cr_assert_not(wr_lock_enter_by(&lock, 0));
    cr_assert_not(wr_lock_enter_by(&lock, wr_clock_monotonic_ns() + WR_NS_PER_US));
}

Test(lock, a_lock_that_was_given_up_on_can_be_left_and_entered, PATIENCE)
{
    struct wr_lock lock = {0};
    wr_lock_enter(&lock);
    cr_assert_not(wr_lock_enter_by(&lock, 0));
    wr_lock_leave(&lock);
    cr_assert(wr_lock_enter_by(&lock, 0));
    wr_lock_leave(&lock);
    wr_lock_enter(&lock);
}

Test(lock, a_reset_lock_is_free_whoever_held_it)
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

Test(lock, threads_exclude_each_other, PATIENCE)
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

Test(condition, waiting_past_the_deadline_comes_back_with_the_lock, PATIENCE)
{
    struct wr_lock lock = {0};
    struct wr_condition condition = {0};
    wr_lock_enter(&lock);
    wr_condition_wait(&condition, &lock, 0);
    wr_condition_wait(&condition, &lock, wr_clock_monotonic_ns() + WR_NS_PER_US);
    cr_assert_not(wr_lock_enter_by(&lock, 0));
    cr_assert_eq(condition.waiters, 0);
}

Test(condition, waking_nobody_does_nothing)
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

Test(condition, waking_wakes_all_that_wait, PATIENCE)
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

/* Two threads take turns: a wake-up that got lost would leave both asleep. */
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

Test(condition, no_wake_up_is_lost, PATIENCE)
{
    struct turns turns = {0};
    pthread_t other;
    pthread_create(&other, NULL, take_odd_turns, &turns);
    take_turns(&turns, 0);
    pthread_join(other, NULL);
    cr_assert_eq(turns.turn, 2 * TURNS);
}
