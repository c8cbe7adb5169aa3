/* sync_ends: threads add synchronously while configurations make their handler asynchronous, or take it out of
 * the route. As the handler makes progress all the time, no call may time out. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "../support/ledger.h"
#include "counting.h"

enum { THREADS = 16, CHANGES = 300 };

static _Atomic bool done;
static _Atomic uint64_t added;

static void *produce(void *argument)
{
    char name[20];
    snprintf(name, sizeof name, "n%u", (unsigned)(uintptr_t)argument);
    weir_metric *metric = weir_get_metric(weir_get_stream("stress"), name);
    for (int64_t value = 0; !atomic_load(&done); value++) {
        int result = weir_metric_add_int(metric, value);
        PLAIN_CHECK(result == 0, "a call failed although the handler makes progress");
        atomic_fetch_add(&added, 1);
    }
    return NULL;
}

/* A batch takes a moment, so that calls wait. */
static void delay(const weir_batch *batch)
{
    (void)batch;
    usleep(50);
}

static void configure(const char *delivery, const char *route)
{
    char text[300];
    int length = snprintf(text, sizeof text,
                          "{\"handlers\": {\"counting\": {\"type\": \"counting\", \"delivery\": \"%s\", "
                          "\"block_timeout\": \"1h\"}}, \"groups\": {\"stress\": %s, \"kept\": \"counting\"}}",
                          delivery, route);
    PLAIN_CHECK(weir_configure_text(text, (size_t)length) == 0);
}

int main(void)
{
    pthread_t threads[THREADS];
    weir_stats stats;
    plain_hang_no_longer_than(120);
    counting_before = delay;
    counting_allows_gaps = true; /* without a route they go to no handler */
    PLAIN_CHECK(weir_register_handler_type(&counting_type, NULL) == 0);
    configure("sync", "\"counting\"");
    for (uintptr_t i = 0; i < THREADS; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, produce, (void *)(i + 1)) == 0);
    for (int i = 0; i < CHANGES; i++) {
        usleep(2000);
        configure(i % 2 ? "sync" : "async", i % 4 == 2 ? "[]" : "\"counting\"");
    }
    atomic_store(&done, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    PLAIN_CHECK(weir_flush(-1) == 0);
    PLAIN_CHECK(weir_get_stats(&stats, sizeof stats) == 0);
    PLAIN_CHECK(stats.added == atomic_load(&added) &&
                stats.added == atomic_load(&counting_count) + stats.unrouted);
    PLAIN_CHECK(ledger_is_taken(&stats) && ledger_all_are_balanced());
    return 0;
}
