/* interrupts: signal handlers add values, also while they interrupt adding. Each call is in the ledger, or
 * refused with WEIR_ERR_BUSY and counted. */

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#include <weir/weir.h>

static weir_metric *metric;
static _Atomic uint64_t good, busy, other;

static _Atomic int burst = 1;

enum { OFTEN_US = 50, SELDOM_US = 3000, ENOUGH = 100 };

static void arm(long value_us, long interval_us)
{
    setitimer(ITIMER_REAL, &(struct itimerval){{0, interval_us}, {0, value_us}}, NULL);
}

/* A burst may take longer than the timer's interval, on a busy machine much longer, so the timer starts again
 * when it ends: else the thread would never go on. */
static void interrupt(int signal)
{
    (void)signal;
    for (int i = 0; i < burst; i++) {
        int result = weir_metric_add_int(metric, 1);
        ++*(result == 0 ? &good : result == WEIR_ERR_BUSY ? &busy : &other);
    }
    if (burst > 1)
        arm(SELDOM_US, 0);
}

/* After three seconds; a slow machine may need more of them until the signal handlers have added enough. */
static bool is_expired(time_t *end)
{
    if (!*end)
        *end = time(NULL) + 3;
    return time(NULL) >= *end && good > ENOUGH;
}

static void configure(void)
{
    static const char config[] =
        "{\"handlers\":{\"*\":{\"block_timeout\":\"1h\"}},\"groups\":{\"*\":\"null\"}}";
    if (weir_configure_text(config, sizeof config - 1) == 0)
        return;
    fprintf(stderr, "interrupts: %s\n", weir_last_error());
    exit(1);
}

static uint64_t add(weir_stream *stream)
{
    uint64_t added = 0;
    time_t end = 0;
    char name[32];
    for (int i = 0; !is_expired(&end); i++) {
        for (int j = 0; j < 2000; j++)
            added += weir_add_value(stream, "x", j) == 0;
        /* slow paths: a new name, an event, a flush, a configuration */
        snprintf(name, sizeof name, "n%d", i % 5000);
        weir_value event[] = {{name, 1}, {"y", 2}};
        added += weir_emit(stream, event, 2) == 0 ? 2 : 0;
        if (i % 10 == 0)
            weir_flush(-1);
        if (i % 100 == 0)
            configure();
    }
    return added;
}

/* The signal handlers fill the ring and wait for the dispatcher, whatever locks this thread holds. */
static void flush_and_read_stats(void)
{
    time_t end = 0;
    weir_stats process;
    weir_handler_stats handler;
    burst = 1000;
    arm(SELDOM_US, 0);
    while (!is_expired(&end)) {
        weir_flush(0);
        weir_flush(-1);
        weir_get_stats(&process, sizeof process);
        weir_get_handler_stats("null", &handler, sizeof handler);
    }
    burst = 0; /* and the timer is not started again */
}

int main(void)
{
    configure();
    weir_stream *stream = weir_get_stream("my_app");
    metric = weir_get_metric(stream, "signals");
    if (weir_metric_add_int(metric, 0))
        return 2;
    good = 1;

    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    arm(OFTEN_US, OFTEN_US);
    uint64_t added = add(stream);
    flush_and_read_stats();

    weir_stats stats;
    weir_handler_stats handler;
    weir_flush(-1);
    weir_get_stats(&stats, sizeof stats);
    weir_get_handler_stats("null", &handler, sizeof handler);
    printf("%" PRIu64 " added, %" PRIu64 " by signal handlers, %" PRIu64 " refused as busy, %" PRIu64
           " otherwise\n",
           added, (uint64_t)good, (uint64_t)busy, (uint64_t)other);
    printf("in the ledger: %" PRIu64 " added, %" PRIu64 " delivered, %" PRIu64 " refused as busy\n",
           stats.added, handler.delivered, stats.refused[WEIR_REFUSED_BUSY]);
    return !(stats.added == added + good && handler.delivered == stats.added &&
             stats.refused[WEIR_REFUSED_BUSY] == busy && other == 0 && good > ENOUGH);
}
