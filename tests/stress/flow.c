/* flow: producers that are faster than the handler: rings fill up, gates close and open all the time. No
 * value and no wake-up may be lost. */

#include <pthread.h>
#include <sched.h>

#include "../support/plain.h"
#include "os/clock.h"
#include "text/common.h"
#include "counting.h"

enum { THREADS = 4, SECONDS = 3 };

static int64_t end_ns;

static void *produce(void *argument)
{
    uint64_t random = (uintptr_t)argument, value = 0;
    char name[20];
    snprintf(name, sizeof name, "n%u", (unsigned)(uintptr_t)argument);
    weir_metric *metric = weir_get_metric(weir_get_stream("stress"), name);
    while (wr_clock_monotonic_ns() < end_ns) {
        for (uint32_t left = plain_draw(&random, 3000); left; left--)
            PLAIN_CHECK(weir_metric_add_int(metric, (int64_t)value++) == 0);
        for (uint32_t spin = plain_draw(&random, 2000); spin; spin--)
            wr_clock_relax();
    }
    return (void *)(uintptr_t)value;
}

/* Makes the handler slow at times. */
static void delay_handler(const weir_batch *batch)
{
    static uint64_t random = 1;
    (void)batch;
    if (plain_draw(&random, 100) == 0)
        usleep(200);
}

int main(void)
{
    pthread_t threads[THREADS];
    uint64_t added = 0;
    plain_hang_no_longer_than(120);
    counting_before = delay_handler;
    counting_configure("{\"queue\": \"4KiB\", \"batch\": 50, \"block_timeout\": \"1d\"}");
    end_ns = wr_clock_monotonic_ns() + SECONDS * WR_NS_PER_S;
    for (uintptr_t i = 0; i < THREADS; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, produce, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *values;
        pthread_join(threads[i], &values);
        added += (uintptr_t)values;
    }
    PLAIN_CHECK(weir_flush(-1) == 0);
    PLAIN_CHECK(atomic_load(&counting_count) == added);
    weir_handler_stats stats;
    PLAIN_CHECK(weir_get_handler_stats("counting", &stats, sizeof stats) == 0);
    PLAIN_CHECK(stats.offered == added && stats.delivered == added && stats.queued == 0);
    printf("%llu values\n", (unsigned long long)added);
    return 0;
}
