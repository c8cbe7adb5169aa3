/* Locks, conditions, bells and gates, each by many threads at once. Nothing here has a time limit: a wake-up
 * that got lost hangs. */

#include <pthread.h>
#include <sched.h>

#include "../support/plain.h"
#include "os/wakeup.h"
#include "os/clock.h"
#include "text/common.h"
#include "producer/gate.h"
#include "os/lock.h"

enum { THREADS = 4, TURNS = 20000 };

static void run_threads(void *(*run)(void *), void *argument)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, run, argument) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- Locks ----------------------------------------------------------------------------------- */

struct counting {
    struct wr_lock lock;
    uint64_t count, given_up; /* under the lock */
};

/* Every third time in a hurry: whoever gives up must not leave the lock in a state that keeps others out. */
static void *count(void *argument)
{
    struct counting *counting = argument;
    uint64_t given_up = 0;
    for (int i = 0; i < TURNS; i++) {
        if (i % 3 || !wr_lock_enter_by(&counting->lock, wr_clock_monotonic_ns() + 1000)) {
            given_up += i % 3 == 0;
            wr_lock_enter(&counting->lock);
        }
        counting->count++;
        if (i % 64 == 0)
            sched_yield(); /* so that others come to sleep */
        wr_lock_leave(&counting->lock);
    }
    wr_lock_enter(&counting->lock);
    counting->given_up += given_up;
    wr_lock_leave(&counting->lock);
    return NULL;
}

static void stress_lock(void)
{
    static struct counting counting;
    run_threads(count, &counting);
    PLAIN_CHECK(counting.count == THREADS * TURNS, "two were inside at once");
    PLAIN_CHECK(wr_lock_enter_by(&counting.lock, 0), "everybody has left");
    printf("lock: given up %llu times\n", (unsigned long long)counting.given_up);
}

/* ---- Conditions ------------------------------------------------------------------------------ */

/* A queue with one place: those who put wait for those who take, and the other way round. */
struct place {
    struct wr_lock lock;
    struct wr_condition filled, emptied;
    bool full;
    uint64_t put, taken;
};

static void put(struct place *place)
{
    wr_lock_enter(&place->lock);
    while (place->full)
        wr_condition_wait(&place->emptied, &place->lock, WR_NEVER);
    place->full = true;
    place->put++;
    wr_condition_wake(&place->filled);
    wr_lock_leave(&place->lock);
}

static void take(struct place *place)
{
    wr_lock_enter(&place->lock);
    while (!place->full)
        wr_condition_wait(&place->filled, &place->lock, WR_NEVER);
    place->full = false;
    place->taken++;
    wr_condition_wake(&place->emptied);
    wr_lock_leave(&place->lock);
}

static void *put_many(void *argument)
{
    for (int i = 0; i < TURNS; i++)
        put(argument);
    return NULL;
}

static void *take_many(void *argument)
{
    for (int i = 0; i < TURNS; i++)
        take(argument);
    return NULL;
}

static void stress_condition(void)
{
    static struct place place;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, i % 2 ? put_many : take_many, &place) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    PLAIN_CHECK(place.put == 2 * TURNS && place.taken == 2 * TURNS);
    PLAIN_CHECK(place.filled.waiters == 0 && place.emptied.waiters == 0);
}

/* ---- Bells ----------------------------------------------------------------------------------- */

struct work {
    struct wr_wakeup wakeup;
    _Atomic uint64_t brought;
};

static void *bring(void *argument)
{
    struct work *work = argument;
    for (int i = 0; i < TURNS; i++) {
        atomic_fetch_add(&work->brought, 1);
        wr_wakeup_send(&work->wakeup);
        if (i % 4 == 0)
            sched_yield();
    }
    return NULL;
}

/* As the dispatcher does: prepare, look for the last time, sleep. */
static void *wait_for_work(void *argument)
{
    struct work *work = argument;
    uint64_t seen = 0, sleeps = 0;
    while (seen < THREADS * TURNS) {
        seen = atomic_load(&work->brought);
        if (seen == THREADS * TURNS)
            break;
        wr_wakeup_prepare(&work->wakeup);
        wr_wakeup_wait(&work->wakeup, atomic_load(&work->brought) == seen ? WR_NEVER : 0);
        sleeps++;
    }
    printf("bell: slept %llu times\n", (unsigned long long)sleeps);
    return NULL;
}

static void stress_bell(void)
{
    static struct work work;
    pthread_t sleeper;
    PLAIN_CHECK(pthread_create(&sleeper, NULL, wait_for_work, &work) == 0);
    run_threads(bring, &work);
    pthread_join(sleeper, NULL);
}

/* ---- Gates ----------------------------------------------------------------------------------- */

static struct wr_group group;
static _Atomic uint32_t passing;

static void *pass(void *argument)
{
    (void)argument;
    for (int i = 0; i < TURNS; i++) {
        while (wr_gate_read(&group) == WR_GATE_WAIT)
            wr_gate_wait(&group, WR_NEVER);
        if (i % 16 == 0)
            sched_yield();
    }
    atomic_fetch_sub(&passing, 1);
    return NULL;
}

/* Whoever waits when the gate leaves WAIT is woken by that, and not by the next time. */
static void *open_and_close(void *argument)
{
    uint64_t random = 7;
    (void)argument;
    while (atomic_load(&passing)) {
        wr_gate_set(&group, WR_GATE_WAIT);
        for (uint32_t spin = plain_draw(&random, 500); spin; spin--)
            wr_clock_relax();
        wr_gate_set(&group, plain_draw(&random, 2) ? WR_GATE_OPEN : WR_GATE_COLD);
        while (atomic_load(&group.waiters))
            sched_yield();
    }
    return NULL;
}

static void stress_gate(void)
{
    pthread_t keeper;
    atomic_store(&passing, THREADS);
    PLAIN_CHECK(pthread_create(&keeper, NULL, open_and_close, NULL) == 0);
    run_threads(pass, NULL);
    pthread_join(keeper, NULL);
    PLAIN_CHECK(atomic_load(&group.waiters) == 0);
}

int main(void)
{
    plain_hang_no_longer_than(120);
    stress_lock();
    stress_condition();
    stress_bell();
    stress_gate();
    return 0;
}
