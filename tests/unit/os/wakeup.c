#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>

#include "os/wakeup.h"
#include "text/common.h"
#include "producer/gate.h"

#define TEST_TIMEOUT .timeout = 60

/* ---- wakeup ------------------------------------------------------------------------------------ */

Test(wakeup, a_timeout_of_zero_does_not_sleep, TEST_TIMEOUT)
{
    struct wr_wakeup wakeup = {0};
    wr_wakeup_prepare(&wakeup);
    wr_wakeup_wait(&wakeup, 0);
    cr_assert_eq(wakeup.asleep, 0);
}

Test(wakeup, a_ring_before_prepare_prevents_the_sleep, TEST_TIMEOUT)
{
    struct wr_wakeup wakeup = {0};
    wr_wakeup_send(&wakeup);
    wr_wakeup_prepare(&wakeup);
    wr_wakeup_wait(&wakeup, WR_NEVER);
}

Test(wakeup, a_ring_after_prepare_prevents_the_sleep, TEST_TIMEOUT)
{
    struct wr_wakeup wakeup = {0};
    wr_wakeup_prepare(&wakeup);
    wr_wakeup_send(&wakeup);
    wr_wakeup_wait(&wakeup, WR_NEVER);
}

Test(wakeup, sleeping_consumes_earlier_rings)
{
    struct wr_wakeup wakeup = {0};
    wr_wakeup_send(&wakeup);
    wr_wakeup_send(&wakeup);
    wr_wakeup_prepare(&wakeup);
    wr_wakeup_wait(&wakeup, WR_NEVER);
    cr_assert_eq(wakeup.sent, 0);
    cr_assert_eq(wakeup.asleep, 0);
}

Test(wakeup, only_one_of_several_rings_wakes_the_sleeper)
{
    struct wr_wakeup wakeup = {0};
    wr_wakeup_prepare(&wakeup);
    wr_wakeup_send(&wakeup);
    cr_assert_eq(wakeup.asleep, 0);
}

static void *ring_a_sleeper(void *argument)
{
    struct wr_wakeup *wakeup = argument;
    while (!atomic_load(&wakeup->asleep))
        sched_yield();
    wr_wakeup_send(wakeup);
    return NULL;
}

Test(wakeup, ringing_wakes_the_sleeper, TEST_TIMEOUT)
{
    struct wr_wakeup wakeup = {0};
    pthread_t ringer;
    pthread_create(&ringer, NULL, ring_a_sleeper, &wakeup);
    wr_wakeup_prepare(&wakeup);
    wr_wakeup_wait(&wakeup, WR_NEVER);
    pthread_join(ringer, NULL);
}

/* ---- gate ------------------------------------------------------------------------------------ */

Test(gate, an_open_gate_lets_threads_pass, TEST_TIMEOUT)
{
    struct wr_group group = {0};
    const enum wr_gate gates[] = {WR_GATE_COLD, WR_GATE_OFF, WR_GATE_OPEN, WR_GATE_SYNC, WR_GATE_REFUSE};
    for (size_t i = 0; i < WR_COUNT_OF(gates); i++) {
        wr_gate_set(&group, gates[i]);
        cr_assert_eq(wr_gate_read(&group), gates[i]);
        wr_gate_wait(&group, WR_NEVER);
    }
    cr_assert_eq(group.waiters, 0);
}

Test(gate, waiting_ends_at_the_timeout, TEST_TIMEOUT)
{
    struct wr_group group = {.gate = WR_GATE_WAIT};
    wr_gate_wait(&group, 1);
    wr_gate_wait(&group, 0);
    cr_assert_eq(group.waiters, 0);
    cr_assert_eq(wr_gate_read(&group), WR_GATE_WAIT);
}

enum { WAITERS = 4 };

static void *wait_at_gate(void *argument)
{
    struct wr_group *group = argument;
    while (wr_gate_read(group) == WR_GATE_WAIT)
        wr_gate_wait(group, WR_NEVER);
    return NULL;
}

static void open_for_waiters(enum wr_gate gate)
{
    struct wr_group group = {.gate = WR_GATE_WAIT};
    pthread_t waiters[WAITERS];
    for (int i = 0; i < WAITERS; i++)
        pthread_create(&waiters[i], NULL, wait_at_gate, &group);
    while (atomic_load(&group.waiters) < WAITERS)
        sched_yield();
    wr_gate_set(&group, gate);
    for (int i = 0; i < WAITERS; i++)
        pthread_join(waiters[i], NULL);
    cr_assert_eq(group.waiters, 0);
}

Test(gate, opening_wakes_all_waiters, TEST_TIMEOUT)
{
    open_for_waiters(WR_GATE_OPEN);
}

Test(gate, any_other_state_wakes_all_waiters, TEST_TIMEOUT)
{
    open_for_waiters(WR_GATE_COLD);
    open_for_waiters(WR_GATE_OFF);
    open_for_waiters(WR_GATE_SYNC);
}
