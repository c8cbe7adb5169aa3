/* collectors: several threads add and remove collectors while these are called. No call may run once its
 * removal has returned, and each value is counted. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <weir/weir.h>

#include "../support/ledger.h"
#include "../support/plain.h"

enum { THREADS = 4, ROUNDS = 500, TOGETHER = 3 };

static _Atomic uint64_t added;

/* Plain memory: a call that overlaps the removal is a data race, and one that follows it uses freed memory. */
struct counter {
    uint64_t calls;
};

static void collect(weir_stream *stream, void *context)
{
    struct counter *counter = context;
    counter->calls++;
    PLAIN_CHECK(weir_add_int(stream, "calls", 1) == 0);
}

static void *add_and_remove(void *number)
{
    weir_stream *stream = weir_get_stream("collectors");
    uint64_t state = (uint64_t)(uintptr_t)number + 1;
    for (int i = plain_rounds(ROUNDS); i > 0; i--) {
        weir_collector *collectors[TOGETHER];
        struct counter *counters[TOGETHER];
        for (int k = 0; k < TOGETHER; k++) {
            counters[k] = calloc(1, sizeof *counters[k]);
            collectors[k] = weir_add_collector(stream, collect, counters[k], 1 + plain_draw(&state, 2));
            PLAIN_CHECK(counters[k] && collectors[k]);
        }
        usleep(plain_draw(&state, 3000));
        for (int k = 0; k < TOGETHER; k++) {
            weir_remove_collector(collectors[k]);
            atomic_fetch_add(&added, counters[k]->calls);
            free(counters[k]);
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    weir_stats process;
    weir_handler_stats stats;
    char text[LEDGER_ROOM];
    plain_hang_no_longer_than(plain_limit(60));
    PLAIN_CHECK(weir_configure("*", "null", NULL) == 0);
    PLAIN_CHECK(weir_start() == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, add_and_remove, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    PLAIN_CHECK(weir_flush(-1) == 0);
    PLAIN_CHECK(weir_get_stats(&process, sizeof process) == 0);
    PLAIN_CHECK(ledger_is_taken(&process));
    PLAIN_CHECK(weir_get_handler_stats("null", &stats, sizeof stats) == 0);
    PLAIN_CHECK(ledger_is_balanced(&stats), "the ledger");
    fprintf(stderr, "%s\n", ledger_format(&stats, text));
    PLAIN_CHECK(added > 0 && stats.delivered == added && process.added == added);
    return 0;
}
