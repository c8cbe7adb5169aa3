/* shutdown: threads add values, start and end while weir is shut down. Each value of a call that returned 0
 * is in the ledger and delivered; all others were refused. */

#include <pthread.h>

#include "../support/plain.h"
#include "counting.h"

enum { THREADS = 4, RUN_US = 300000 };

static _Atomic uint64_t accepted, refused;
static _Atomic bool done;

static void add_until_closed(unsigned number)
{
    char name[20];
    snprintf(name, sizeof name, "n%u", number);
    weir_metric *metric = weir_get_metric(weir_get_stream("stress"), name);
    int64_t value = 0;
    while (!atomic_load(&done)) {
        int result = weir_metric_add_int(metric, value);
        PLAIN_CHECK(result == 0 || result == WEIR_ERR_CLOSED);
        value += result == 0;
        atomic_fetch_add(result ? &refused : &accepted, 1);
    }
}

static void *produce(void *argument)
{
    add_until_closed((unsigned)(uintptr_t)argument);
    return NULL;
}

/* One value per thread, from threads that start and end all the time. */
static void *add_one(void *argument)
{
    int result = weir_add_int(weir_get_stream("short"), argument, 0);
    PLAIN_CHECK(result == 0 || result == WEIR_ERR_CLOSED);
    atomic_fetch_add(result ? &refused : &accepted, 1);
    return NULL;
}

static void *spawn(void *argument)
{
    static char names[40][8];
    (void)argument;
    for (unsigned i = 0; !atomic_load(&done); i++) {
        pthread_t thread;
        snprintf(names[i % 40], sizeof names[0], "s%u", i % 40);
        if (i < 40 && pthread_create(&thread, NULL, add_one, names[i % 40]) == 0)
            pthread_join(thread, NULL);
        usleep(5000);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS], spawner;
    weir_stats stats;
    plain_hang_no_longer_than(120);
    counting_configure("{\"queue\": \"64KiB\", \"block_timeout\": \"1h\"}");
    for (uintptr_t i = 0; i < THREADS; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, produce, (void *)(i + 1)) == 0);
    PLAIN_CHECK(pthread_create(&spawner, NULL, spawn, NULL) == 0);
    usleep(RUN_US);
    PLAIN_CHECK(weir_shutdown(60000) == 0);
    usleep(RUN_US / 10);
    atomic_store(&done, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_join(spawner, NULL);
    PLAIN_CHECK(weir_get_stats(&stats, sizeof stats) == 0);
    printf("%llu accepted, %llu refused\n", (unsigned long long)atomic_load(&accepted),
           (unsigned long long)atomic_load(&refused));
    PLAIN_CHECK(stats.added == atomic_load(&accepted));
    PLAIN_CHECK(stats.taken == stats.added && stats.in_rings == 0, "a value was added after the last round");
    PLAIN_CHECK(stats.refused[WEIR_REFUSED_CLOSED] == atomic_load(&refused));
    PLAIN_CHECK(stats.unrouted == 0, "a value in progress was counted as one without a route");
    PLAIN_CHECK(atomic_load(&counting_count) == atomic_load(&accepted));
    return 0;
}
