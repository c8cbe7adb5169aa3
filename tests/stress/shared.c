/* shared: more threads than rings: the last ones share one, while another thread reads the ledger and weir
 * is shut down. */

#include <pthread.h>

#include "../support/plain.h"
#include "counting.h"
#include "producer/fast_add.h"
#include "runtime/runtime.h"

enum { THREADS = 6, RUN_US = 500000 };

static _Atomic uint64_t accepted, refused;
static _Atomic bool done;

static void *produce(void *argument)
{
    char name[20];
    snprintf(name, sizeof name, "n%u", (unsigned)(uintptr_t)argument);
    weir_metric *metric = weir_get_metric(weir_get_stream("stress"), name);
    int64_t value = 0;
    while (!atomic_load(&done)) {
        int result = weir_metric_add_int(metric, value);
        PLAIN_CHECK(result == 0 || result == WEIR_ERR_CLOSED);
        /* else the fast path would end its call in the midst of that of another thread */
        PLAIN_CHECK(wr_producer_mine->shared && wr_fast_add_is_busy(wr_producer_mine));
        value += result == 0;
        atomic_fetch_add(result ? &refused : &accepted, 1);
    }
    return NULL;
}

static void *read_ledger(void *argument)
{
    uint64_t last = 0;
    (void)argument;
    while (!atomic_load(&done)) {
        weir_stats stats;
        PLAIN_CHECK(weir_get_stats(&stats, sizeof stats) == 0);
        PLAIN_CHECK(stats.added == stats.taken + stats.in_rings && stats.added >= last);
        last = stats.added;
        usleep(200);
    }
    return NULL;
}

/* Attaches all rings to this thread, then restores its own. */
static void use_up_rings(struct wr_producer *unattached)
{
    struct wr_producers *producers = &wr_runtime_get()->producers;
    struct wr_producer *mine = wr_producer_mine;
    while (atomic_load(&producers->count) < WR_PRODUCERS_MOST) {
        wr_producer_mine = unattached;
        PLAIN_CHECK(wr_producers_attach(producers));
    }
    wr_producer_mine = mine;
}

int main(void)
{
    struct wr_producer *unattached = wr_producer_mine;
    pthread_t threads[THREADS], reader;
    weir_stats stats;
    plain_hang_no_longer_than(120);
    counting_configure("{\"block_timeout\": \"1h\"}");
    weir_add_int(weir_get_stream("stress"), "first", 0);
    PLAIN_CHECK(pthread_create(&reader, NULL, read_ledger, NULL) == 0);
    use_up_rings(unattached);
    for (uintptr_t i = 0; i < THREADS; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, produce, (void *)(i + 1)) == 0);
    usleep(RUN_US);
    PLAIN_CHECK(weir_shutdown(60000) == 0);
    atomic_store(&done, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_join(reader, NULL);
    PLAIN_CHECK(weir_get_stats(&stats, sizeof stats) == 0);
    printf("%llu accepted, %llu refused\n", (unsigned long long)atomic_load(&accepted),
           (unsigned long long)atomic_load(&refused));
    PLAIN_CHECK(stats.added == atomic_load(&accepted) + 1 && stats.in_rings == 0);
    PLAIN_CHECK(atomic_load(&counting_count) == stats.added);
    return 0;
}
