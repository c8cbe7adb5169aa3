/* lock: locks, conditions, wakeups and gates used by many threads at the same time. There are no time
 * limits: a lost wake-up hangs. */

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

/* Every third time with a short timeout: a thread that gives up must leave the lock usable for others. */
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
            sched_yield(); /* so that others fall asleep */
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
    PLAIN_CHECK(counting.count == THREADS * TURNS, "two threads held the lock at the same time");
    PLAIN_CHECK(wr_lock_enter_by(&counting.lock, 0), "the lock must be free");
    printf("lock: given up %llu times\n", (unsigned long long)counting.given_up);
}

/* ---- Conditions ------------------------------------------------------------------------------ */

/* A queue of length one: producers wait for consumers, and the other way round. */
struct slot {
    struct wr_lock lock;
    struct wr_condition filled, emptied;
    bool full;
    uint64_t put, taken;
};

static void put(struct slot *slot)
{
    wr_lock_enter(&slot->lock);
    while (slot->full)
        wr_condition_wait(&slot->emptied, &slot->lock, WR_NEVER);
    slot->full = true;
    slot->put++;
    wr_condition_wake(&slot->filled);
    wr_lock_leave(&slot->lock);
}

static void take(struct slot *slot)
{
    wr_lock_enter(&slot->lock);
    while (!slot->full)
        wr_condition_wait(&slot->filled, &slot->lock, WR_NEVER);
    slot->full = false;
    slot->taken++;
    wr_condition_wake(&slot->emptied);
    wr_lock_leave(&slot->lock);
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
    static struct slot slot;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, i % 2 ? put_many : take_many, &slot) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    PLAIN_CHECK(slot.put == 2 * TURNS && slot.taken == 2 * TURNS);
    PLAIN_CHECK(slot.filled.waiters == 0 && slot.emptied.waiters == 0);
}

/* ---- Wakeups --------------------------------------------------------------------------------- */

struct work {
    struct wr_wakeup wakeup;
    _Atomic uint64_t produced;
};

static void *produce(void *argument)
{
    struct work *work = argument;
    for (int i = 0; i < TURNS; i++) {
        atomic_fetch_add(&work->produced, 1);
        wr_wakeup_send(&work->wakeup);
        if (i % 4 == 0)
            sched_yield();
    }
    return NULL;
}

/* Like the dispatcher: prepare, check a last time, sleep. */
static void *wait_for_work(void *argument)
{
    struct work *work = argument;
    uint64_t seen = 0, sleeps = 0;
    while (seen < THREADS * TURNS) {
        seen = atomic_load(&work->produced);
        if (seen == THREADS * TURNS)
            break;
        wr_wakeup_prepare(&work->wakeup);
        wr_wakeup_wait(&work->wakeup, atomic_load(&work->produced) == seen ? WR_NEVER : 0);
        sleeps++;
    }
    printf("wakeup: slept %llu times\n", (unsigned long long)sleeps);
    return NULL;
}

static void stress_wakeup(void)
{
    static struct work work;
    pthread_t sleeper;
    PLAIN_CHECK(pthread_create(&sleeper, NULL, wait_for_work, &work) == 0);
    run_threads(produce, &work);
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

/* A thread that waits when the gate leaves WAIT must be woken by this change, not by the next one. */
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
    stress_wakeup();
    stress_gate();
    return 0;
}
