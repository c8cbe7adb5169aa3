/* hurry: weir_shutdown(0) while other threads add values and read the ledger. Remaining values are dropped
 * and counted, because no thread holds any lock for long. Each shutdown has its own process. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "counting.h"

enum { SHUTDOWNS = 20, THREADS = 3 };

static atomic_bool over;

static void fail_with_retry(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)batch;
    outcome->code = WEIR_OUTCOME_RETRY;
    outcome->done = 0;
}

static void *add_and_read_stats(void *argument)
{
    weir_stream *stream = weir_get_stream("hurry");
    weir_stats stats;
    while (!atomic_load(&over)) {
        weir_add_value(stream, "value", 1);
        weir_get_stats(&stats, sizeof stats);
    }
    return argument;
}

static void shut_down_at_once(void)
{
    static weir_handler_type failing;
    pthread_t threads[THREADS];
    weir_stats process;
    weir_handler_stats stats;
    plain_hang_no_longer_than(100);
    setenv("WEIR_LOG", "off", 1);
    failing = counting_type;
    failing.emit = fail_with_retry;
    PLAIN_CHECK(weir_register_handler_type(&failing, NULL) == 0);
    PLAIN_CHECK(weir_configure("*", "counting", "{\"overflow\":\"drop_newest\"}") == 0);
    PLAIN_CHECK(weir_add_value(weir_get_stream("hurry"), "value", 0) == 0);
    for (int i = 0; i < THREADS; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, add_and_read_stats, NULL) == 0);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    PLAIN_CHECK(weir_shutdown(0) == WEIR_ERR_DROPPED, "the remaining values are not reported as dropped");
    atomic_store(&over, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    weir_get_stats(&process, sizeof process);
    PLAIN_CHECK(weir_get_handler_stats("counting", &stats, sizeof stats) == 0);
    PLAIN_CHECK(process.added == process.taken && process.taken == stats.offered && stats.delivered == 0);
    PLAIN_CHECK(stats.queued == 0, "values stay queued");
    PLAIN_CHECK(stats.offered == stats.dropped[WEIR_DROPPED_FULL] + stats.dropped[WEIR_DROPPED_SHUTDOWN]);
}

int main(void)
{
    for (int i = 0; i < SHUTDOWNS; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            shut_down_at_once();
            _exit(0);
        }
        PLAIN_CHECK(child > 0 && waitpid(child, &status, 0) == child);
        PLAIN_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return 0;
}
