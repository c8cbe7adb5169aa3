/* no_round: the round lock is held, as by the start of a journal that waits for malloc, or by a thread that is
 * not scheduled. A call whose ring is full is refused as busy after a while instead of waiting for ever: it may
 * be made by the thread that the other one waits for. */

#include <pthread.h>
#include <semaphore.h>

#include "../support/plain.h"
#include "counting.h"
#include "runtime/runtime.h"

static sem_t added_first, is_held;
static uint64_t accepted = 1;

static void *add_until_refused(void *argument)
{
    int result;
    weir_metric *metric = weir_get_metric(weir_get_stream("no_round"), "value");
    PLAIN_CHECK(weir_metric_add_int(metric, 0) == 0 && weir_flush(-1) == 0);
    sem_post(&added_first);
    while (sem_wait(&is_held) != 0)
        ;
    while ((result = weir_metric_add_int(metric, (int64_t)accepted)) == 0)
        accepted++;
    PLAIN_CHECK(result == WEIR_ERR_BUSY);
    return argument;
}

int main(void)
{
    struct wr_visit visit;
    pthread_t thread;
    weir_stats process;
    weir_handler_stats handler;
    plain_hang_no_longer_than(60);
    sem_init(&added_first, 0, 0);
    sem_init(&is_held, 0, 0);
    counting_configure("{\"block_timeout\": \"1h\"}");
    PLAIN_CHECK(pthread_create(&thread, NULL, add_until_refused, NULL) == 0);
    while (sem_wait(&added_first) != 0)
        ;
    wr_engine_enter(wr_runtime_engine(wr_runtime_get()), &visit);
    visit.engine->limits.no_round_ns = 0; /* the number of waits counts as well */
    sem_post(&is_held);
    pthread_join(thread, NULL);
    wr_engine_leave(&visit);
    PLAIN_CHECK(weir_flush(-1) == 0 && weir_get_stats(&process, sizeof process) == 0);
    PLAIN_CHECK(weir_get_handler_stats("counting", &handler, sizeof handler) == 0);
    printf("%llu accepted\n", (unsigned long long)accepted);
    PLAIN_CHECK(process.added == accepted && process.refused[WEIR_REFUSED_BUSY] == 1);
    PLAIN_CHECK(handler.offered == accepted && handler.delivered == accepted && handler.queued == 0);
    return 0;
}
