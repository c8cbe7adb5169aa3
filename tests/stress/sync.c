/* sync: synchronous calls of many threads to a handler that is slow at times. When a call returns 0, its
 * value has been delivered, also right after calls that timed out. */

#include <pthread.h>

#include "../support/plain.h"
#include "os/clock.h"
#include "text/common.h"
#include "counting.h"
#include "registry/registry.h"

enum { THREADS = 4, SECONDS = 3 };

static int64_t end_ns;
static _Atomic uint64_t succeeded, timed_out;

static void *produce(void *argument)
{
    uint64_t value = 0;
    char name[20];
    snprintf(name, sizeof name, "n%u", (unsigned)(uintptr_t)argument);
    weir_metric *metric = weir_get_metric(weir_get_stream("stress"), name);
    while (wr_clock_monotonic_ns() < end_ns) {
        int result = weir_metric_add_int(metric, (int64_t)value);
        PLAIN_CHECK(result == 0 || result == WEIR_ERR_TIMEOUT);
        if (result == 0)
            PLAIN_CHECK(atomic_load(&counting_next[metric->series]) == value + 1,
                        "the call returned before its value was delivered");
        atomic_fetch_add(result ? &timed_out : &succeeded, 1);
        value++;
    }
    return (void *)(uintptr_t)value;
}

/* Longer than block_timeout. */
static void delay_handler(const weir_batch *batch)
{
    static uint64_t random = 1;
    (void)batch;
    if (plain_draw(&random, 100) == 0)
        usleep(6000);
}

int main(void)
{
    pthread_t threads[THREADS];
    uint64_t added = 0;
    plain_hang_no_longer_than(120);
    counting_before = delay_handler;
    counting_configure("{\"delivery\": \"sync\", \"block_timeout\": \"1ms\"}");
    end_ns = wr_clock_monotonic_ns() + SECONDS * WR_NS_PER_S;
    for (uintptr_t i = 0; i < THREADS; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, produce, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *values;
        pthread_join(threads[i], &values);
        added += (uintptr_t)values;
    }
    PLAIN_CHECK(weir_flush(-1) == 0);
    PLAIN_CHECK(atomic_load(&counting_count) == added, "values of calls that timed out must be delivered too");
    printf("%llu succeeded, %llu timed out\n", (unsigned long long)atomic_load(&succeeded),
           (unsigned long long)atomic_load(&timed_out));
    return 0;
}
