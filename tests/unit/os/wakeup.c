#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>

#include "os/wakeup.h"
#include "text/common.h"
#include "producer/gate.h"

#define PATIENCE .timeout = 60

/* ---- wakeup ------------------------------------------------------------------------------------ */

Test(wakeup, no_time_means_no_sleep, PATIENCE)
{
    struct wr_wakeup wakeup = {0};
    wr_wakeup_prepare(&wakeup);
    wr_wakeup_wait(&wakeup, 0);
    cr_assert_eq(wakeup.asleep, 0);
}

Test(wakeup, rung_before_prepare_there_is_no_sleep, PATIENCE)
{
    struct wr_wakeup wakeup = {0};
    wr_wakeup_send(&wakeup);
    wr_wakeup_prepare(&wakeup);
    wr_wakeup_wait(&wakeup, WR_NEVER);
}

Test(wakeup, rung_after_prepare_there_is_no_sleep, PATIENCE)
{
    struct wr_wakeup wakeup = {0};
    wr_wakeup_prepare(&wakeup);
    wr_wakeup_send(&wakeup);
    wr_wakeup_wait(&wakeup, WR_NEVER);
}

Test(wakeup, sleeping_forgets_what_was_rung_before)
{
    struct wr_wakeup wakeup = {0};
    wr_wakeup_send(&wakeup);
    wr_wakeup_send(&wakeup);
    wr_wakeup_prepare(&wakeup);
    wr_wakeup_wait(&wakeup, WR_NEVER);
    cr_assert_eq(wakeup.sent, 0);
    cr_assert_eq(wakeup.asleep, 0);
}

Test(wakeup, ringing_takes_the_sleepers_word_so_that_only_one_ringer_wakes_it)
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

Test(wakeup, ringing_wakes_the_sleeper, PATIENCE)
{
    struct wr_wakeup wakeup = {0};
    pthread_t ringer;
    pthread_create(&ringer, NULL, ring_a_sleeper, &wakeup);
    wr_wakeup_prepare(&wakeup);
    wr_wakeup_wait(&wakeup, WR_NEVER);
    pthread_join(ringer, NULL);
}

/* ---- gate ------------------------------------------------------------------------------------ */

Test(gate, a_gate_that_is_not_at_wait_lets_everybody_pass, PATIENCE)
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

Test(gate, waiting_ends_with_its_time, PATIENCE)
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

Test(gate, opening_wakes_all_that_wait, PATIENCE)
{
    open_for_waiters(WR_GATE_OPEN);
}

Test(gate, whatever_it_is_set_to_wakes_all_that_wait, PATIENCE)
{
    open_for_waiters(WR_GATE_COLD);
    open_for_waiters(WR_GATE_OFF);
    open_for_waiters(WR_GATE_SYNC);
}
