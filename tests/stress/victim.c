/* victim: adds values until it is killed or ends itself; tests/stress/killing.py checks the results.
 *
 * usage: victim PROGRESS RUN THREADS END [HANDLER...]
 *
 * Thread number k adds 0, 1, 2, ... to group "t<k>" with the name "r<RUN>": most values one by one, some in
 * events of three, some with metadata. The file PROGRESS contains the number of successfully added values of
 * each thread, as 64-bit numbers. It is mapped, and so survives the process as the journal does.
 *
 * END: "wait": until it is killed; "abort", "segv", "term", "_exit", "exit": by another thread, after 30 ms
 * and at least one value; "reload": like "wait", with constant reloads of the configuration; "forked": like
 * "wait", in a child forked after the parent had used weir; "drain": one value of the group "drain" and a
 * shutdown, then prints the ledgers of each HANDLER. */

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

enum { MAX_THREADS = 16, BURST = 60, EVENT = 3 };

static _Atomic uint64_t *progress;
static const char *run;

static void sleep_us(long us)
{
    nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

/* Adds the number and perhaps the next ones. Returns action many. */
static uint64_t add(weir_stream *stream, weir_metric *metric, const char *name, uint64_t number)
{
    double value = (double)number;
    if (number % 16 == 5) {
        const weir_value values[EVENT] = {{name, value}, {name, value + 1}, {name, value + 2}};
        return weir_emit(stream, values, EVENT) == 0 ? EVENT : 0;
    }
    if (number % 16 == 11) {
        char text[80];
        snprintf(text, sizeof text, "{\"number\":%" PRIu64 ",\"of\":\"a text that takes more than one slot\"}",
                 number);
        const weir_sample_spec spec = {.size = sizeof spec, .name = name, .value = value, .metadata = text};
        return weir_add(stream, &spec) == 0;
    }
    return weir_metric_add(metric, value) == 0;
}

static void *add_all(void *argument)
{
    int thread = *(int *)argument;
    char group[16], name[32];
    snprintf(group, sizeof group, "t%d", thread);
    snprintf(name, sizeof name, "r%s", run);
    weir_stream *stream = weir_get_stream(group);
    weir_metric *metric = weir_get_metric(stream, name);
    for (uint64_t number = 0;;) {
        number += add(stream, metric, name, number);
        atomic_store(&progress[thread], number);
        if (number % BURST < EVENT)
            sleep_us(1000);
    }
    return NULL;
}

static void *reload(void *unused)
{
    for (;; sleep_us(3000))
        weir_reload();
    return unused;
}

static void *end_process(void *argument)
{
    const char *action = argument;
    for (sleep_us(30000); !progress[0]; sleep_us(1000))
        continue;
    if (strcmp(action, "abort") == 0)
        abort();
    if (strcmp(action, "segv") == 0)
        raise(SIGSEGV);
    if (strcmp(action, "term") == 0)
        kill(getpid(), SIGTERM);
    if (strcmp(action, "exit") == 0)
        exit(0);
    _exit(3);
}

static void start(void *(*run_thread)(void *argument), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_thread, argument) != 0)
        exit(4);
}

static void print_ledger(const char *handler)
{
    weir_handler_stats stats;
    uint64_t dropped = 0;
    if (weir_get_handler_stats(handler, &stats, sizeof stats) != 0)
        return;
    for (int i = 0; i < WEIR_DROPPED_MAX; i++)
        dropped += stats.dropped[i];
    printf("%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", handler,
           stats.offered, stats.recovered, stats.delivered, dropped, stats.queued, stats.spooled);
}

/* Values of earlier processes are delivered once the handlers are created. */
static int drain(char **handlers)
{
    bool enabled = weir_stream_enabled(weir_get_stream("t0"));
    weir_add_value(weir_get_stream("drain"), "value", 0); /* a handler reads its spool once its thread runs */
    weir_flush(20000);
    int result = weir_shutdown(20000);
    for (; *handlers; handlers++)
        print_ledger(*handlers);
    return enabled && (result == 0 || result == WEIR_ERR_SPOOLED) ? 0 : 1;
}

/* Returns in the child; the parent sleeps. */
static void continue_in_child(void)
{
    weir_add_value(weir_get_stream("parent"), "number", 0);
    if (fork() == 0)
        return;
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    static int numbers[MAX_THREADS];
    if (argc < 5)
        return 2;
    int threads = atoi(argv[3]), file = open(argv[1], O_RDWR);
    void *memory = mmap(NULL, MAX_THREADS * sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (threads > MAX_THREADS || memory == MAP_FAILED)
        return 2;
    progress = memory;
    run = argv[2];
    if (strcmp(argv[4], "drain") == 0)
        return drain(argv + 5);
    if (strcmp(argv[4], "forked") == 0)
        continue_in_child();
    for (int i = 0; i < threads; i++) {
        numbers[i] = i;
        start(add_all, &numbers[i]);
    }
    if (strcmp(argv[4], "reload") == 0)
        start(reload, NULL);
    else if (strcmp(argv[4], "wait") != 0 && strcmp(argv[4], "forked") != 0)
        start(end_process, argv[4]);
    for (;;)
        pause();
}
