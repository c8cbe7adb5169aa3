/* stats_pollers: threads that read the ledger without a pause do not stop the delivery. */
#include <pthread.h>

#include "counting.h"

enum { POLLERS = 16, VALUES = 20000 };

static _Atomic bool over;
static _Atomic uint64_t polls;

static void *poll_stats(void *argument)
{
    weir_stats stats;
    while (!atomic_load(&over)) {
        PLAIN_CHECK(weir_get_stats(&stats, sizeof stats) == 0);
        PLAIN_CHECK(stats.added == stats.taken + stats.in_rings);
        atomic_fetch_add(&polls, 1);
    }
    return argument;
}

static void wait_for_polls(uint64_t count)
{
    for (count += atomic_load(&polls); atomic_load(&polls) < count;)
        usleep(1000);
}

int main(void)
{
    pthread_t threads[POLLERS];
    plain_hang_no_longer_than(plain_limit(60));
    counting_configure("{\"queue\": \"64MiB\", \"block_timeout\": \"1h\"}");
    weir_metric *metric = weir_get_metric(weir_get_stream("polled"), "value");
    PLAIN_CHECK(weir_metric_add_int(metric, 0) == 0 && weir_flush(-1) == 0);
    for (int i = 0; i < POLLERS; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, poll_stats, NULL) == 0);
    wait_for_polls((uint64_t)POLLERS * 100);
    /* several times as many values as a ring has slots: each time it is full, the call waits for a round */
    int values = plain_rounds(VALUES);
    for (int i = 1; i < values; i++)
        PLAIN_CHECK(weir_metric_add_int(metric, i) == 0);
    while (atomic_load(&counting_count) < (uint64_t)values)
        usleep(1000);
    wait_for_polls(POLLERS); /* and the readers are served, too */
    atomic_store(&over, true);
    for (int i = 0; i < POLLERS; i++)
        pthread_join(threads[i], NULL);
    printf("%d values delivered during %llu reads of the ledger\n", values,
           (unsigned long long)atomic_load(&polls));
    return 0;
}
