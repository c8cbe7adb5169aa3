/* crowd: many threads. A hundred race for the first use; a hundred thousand short-lived ones add one value
 * each; more threads than rings exist at the same time. Nothing is lost, and memory follows the peak number
 * of threads, not the sum. */

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/weir.h>

enum { RACERS = 100, SHORT_LIVED = 100000, AT_ONCE = 8, CROWD = 1100, VALUES = 20 };

static pthread_barrier_t barrier;
static _Atomic uint64_t added;

static void fail(const char *what)
{
    fprintf(stderr, "crowd: %s: %s\n", what, weir_last_error());
    exit(1);
}

static void *race(void *argument)
{
    (void)argument;
    pthread_barrier_wait(&barrier);
    if (weir_add_value(weir_get_stream("my_app"), "racer", 1))
        fail("a racer's value");
    added++;
    return NULL;
}

static void *add_one(void *argument)
{
    (void)argument;
    if (weir_add_value(weir_get_stream("my_app"), "short", 1))
        fail("a short-lived thread's value");
    added++;
    return NULL;
}

/* All threads add their first value before any of them ends, so that each needs its own ring. */
static void *add_in_crowd(void *argument)
{
    (void)argument;
    weir_stream *stream = weir_get_stream("my_app");
    for (int i = 0; i < VALUES; i++) {
        if (weir_add_int(stream, "crowd", i))
            fail("a value in the crowd");
        added++;
        if (i == 0)
            pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void run_all(int count, void *(*run)(void *))
{
    static pthread_t threads[CROWD];
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, run, NULL))
            fail("a thread");
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
}

static void run_short_lived(void)
{
    pthread_t threads[AT_ONCE];
    const char *sanitized = getenv("WEIR_TEST_SANITIZED"); /* sanitizers make each thread slow */
    int rounds = SHORT_LIVED / AT_ONCE / (sanitized && *sanitized ? 10 : 1);
    for (int i = 0; i < rounds; i++) {
        for (int j = 0; j < AT_ONCE; j++)
            if (pthread_create(&threads[j], NULL, add_one, NULL))
                fail("a thread");
        for (int j = 0; j < AT_ONCE; j++)
            pthread_join(threads[j], NULL);
    }
}

static void check(uint64_t max_rings)
{
    weir_stats process;
    weir_handler_stats handler;
    if (weir_flush(-1))
        fail("flush");
    weir_get_stats(&process, sizeof process);
    weir_get_handler_stats("null", &handler, sizeof handler);
    if (process.added == added && process.taken == added && handler.delivered == added &&
        process.threads <= max_rings)
        return;
    fprintf(stderr, "crowd: added %" PRIu64 " of %" PRIu64 ", delivered %" PRIu64 ", %" PRIu64 " rings\n",
            process.added, (uint64_t)added, handler.delivered, process.threads);
    exit(1);
}

int main(void)
{
    static const char config[] =
        "{\"handlers\":{\"*\":{\"block_timeout\":\"1h\"}},\"groups\":{\"*\":\"null\"}}";
    if (weir_configure_text(config, sizeof config - 1))
        fail("the configuration");
    run_all(RACERS, race);
    check(RACERS + 10);
    run_short_lived();
    check(RACERS + 10);
    run_all(CROWD, add_in_crowd);
    check(1024);
    return 0;
}
