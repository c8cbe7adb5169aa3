/* flushers: several threads add and flush at the same time, and their handler refuses the values. Each
 * dropped value must be reported to exactly one flush. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "counting.h"

enum { FLUSHERS = 4, FLUSHES = 2000 };

static _Atomic uint64_t reported;

static void refuse(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    outcome->rejected = batch->count;
}

/* The last error starts with the number of dropped values. */
static void flush(void)
{
    int result = weir_flush(-1);
    PLAIN_CHECK(result == 0 || result == WEIR_ERR_DROPPED);
    uint64_t dropped = result ? strtoull(weir_last_error(), NULL, 10) : 0;
    PLAIN_CHECK(dropped <= FLUSHERS * FLUSHES, "more values are reported as dropped than were added");
    atomic_fetch_add(&reported, dropped);
}

static void *flush_often(void *argument)
{
    weir_stream *stream = weir_get_stream("flushers");
    for (int i = 0; i < FLUSHES; i++) {
        PLAIN_CHECK(weir_add_value(stream, "value", i) == 0);
        flush();
    }
    return argument;
}

int main(void)
{
    static weir_handler_type refusing;
    pthread_t flushers[FLUSHERS];
    weir_handler_stats stats;
    plain_hang_no_longer_than(300);
    setenv("WEIR_LOG", "off", 1);
    refusing = counting_type;
    refusing.emit = refuse;
    PLAIN_CHECK(weir_register_handler_type(&refusing, NULL) == 0);
    PLAIN_CHECK(weir_configure("*", "counting", NULL) == 0);
    for (int i = 0; i < FLUSHERS; i++)
        PLAIN_CHECK(pthread_create(&flushers[i], NULL, flush_often, NULL) == 0);
    for (int i = 0; i < FLUSHERS; i++)
        pthread_join(flushers[i], NULL);
    flush();
    PLAIN_CHECK(weir_get_handler_stats("counting", &stats, sizeof stats) == 0);
    PLAIN_CHECK(stats.offered == FLUSHERS * FLUSHES);
    PLAIN_CHECK(stats.dropped[WEIR_DROPPED_REJECTED] == stats.offered);
    PLAIN_CHECK(reported == stats.offered, "a drop was reported to no flush, or to several");
    return 0;
}
