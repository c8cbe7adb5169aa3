/* park: values that end an idle period, as often as possible: rings are parked as soon as they are empty.
 * After a lost wake-up a value would stay in its ring until the next one; this test adds no next one before. */

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "../support/plain.h"
#include "os/clock.h"
#include "text/common.h"
#include "counting.h"
#include "dispatch/dispatcher.h"
#include "runtime/runtime.h"

enum { THREADS = 4, SECONDS = 3, TIMEOUT_S = 60 };

static int64_t end_ns;
static _Atomic bool done;
static _Atomic uint64_t idle_periods;

/* Waits until the dispatcher has taken everything out of the thread's ring. */
static void wait_until_taken(void)
{
    const struct wr_ring *ring = &wr_producer_mine->ring;
    int64_t timeout_ns = wr_clock_monotonic_ns() + TIMEOUT_S * WR_NS_PER_S;
    for (int i = 0; wr_ring_fill(ring); i++) {
        if (i % 16 == 15)
            sched_yield();
        if (i % 1024 == 1023)
            PLAIN_CHECK(wr_clock_monotonic_ns() < timeout_ns,
                        "a value stays in its ring: the wake-up was lost");
    }
}

/* Mostly one value, sometimes more than the ring can hold. */
static uint32_t draw_burst(uint64_t *random)
{
    uint32_t drawn = plain_draw(random, 100);
    return drawn == 0 ? WR_PRODUCER_SLOTS + plain_draw(random, 5000) : drawn < 20 ? drawn : 1;
}

static void *produce(void *argument)
{
    uint64_t random = (uintptr_t)argument, value = 0;
    char name[20];
    snprintf(name, sizeof name, "n%u", (unsigned)(uintptr_t)argument);
    weir_metric *metric = weir_get_metric(weir_get_stream("stress"), name);
    while (wr_clock_monotonic_ns() < end_ns) {
        for (uint32_t left = draw_burst(&random); left; left--)
            PLAIN_CHECK(weir_metric_add_int(metric, (int64_t)value++) == 0);
        wait_until_taken();
        for (uint32_t spin = plain_draw(&random, 200); spin; spin--)
            wr_clock_relax();
        atomic_fetch_add(&idle_periods, 1);
    }
    return (void *)(uintptr_t)value;
}

/* Makes every ring look idle for long enough to be parked. */
static void *age(void *argument)
{
    struct wr_dispatcher *dispatcher = &wr_runtime_engine(wr_runtime_get())->dispatcher;
    (void)argument;
    while (!atomic_load(&done)) {
        wr_dispatcher_visit(dispatcher);
        for (uint32_t i = 0; i < dispatcher->active_count; i++)
            dispatcher->active[i]->ring.quiet_since_ns = 1;
        wr_dispatcher_leave(dispatcher);
        wr_dispatcher_hurry(dispatcher);
        sched_yield();
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS], ager;
    uint64_t added = 0;
    plain_hang_no_longer_than(120);
    counting_configure("{\"queue\": \"1GiB\", \"block_timeout\": \"1h\"}");
    end_ns = wr_clock_monotonic_ns() + SECONDS * WR_NS_PER_S;
    for (uintptr_t i = 0; i < THREADS; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, produce, (void *)(i + 1)) == 0);
    PLAIN_CHECK(pthread_create(&ager, NULL, age, NULL) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *values;
        pthread_join(threads[i], &values);
        added += (uintptr_t)values;
    }
    atomic_store(&done, true);
    pthread_join(ager, NULL);
    PLAIN_CHECK(weir_flush(-1) == 0);
    PLAIN_CHECK(atomic_load(&counting_count) == added);
    weir_stats stats;
    PLAIN_CHECK(weir_get_stats(&stats, sizeof stats) == 0);
    PLAIN_CHECK(stats.added == added && stats.taken == added && stats.in_rings == 0);
    PLAIN_CHECK(wr_runtime_get()->producers.fenced == WITHOUT_MEMBARRIER);
    printf("%llu values, %llu idle periods\n", (unsigned long long)added,
           (unsigned long long)atomic_load(&idle_periods));
    return 0;
}
