/* victim: a program that uses weir as programs do: configures it, adds values in all ways and from two
 * threads, reloads, flushes, forks, configures again, shuts down. It continues if a call fails, and the
 * ledger must be correct whenever it can be read.
 *
 * usage: victim FILE GROUP HANDLER MILLISECONDS [nofork]
 *
 * FILE is its configuration, HANDLER the one whose ledger it checks; flushes and the shutdown take at most
 * MILLISECONDS. It prints a line for each process: offered, recovered, delivered, dropped, spooled, refused,
 * the number of failed calls, and the number of failed calls without an error message. Exit status: 0
 * success, 1 failure, with a message on stderr, 2 usage error. */

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

#include "breaker.h"

/* Counts of one process; values added before a fork are the parent's. */
static struct {
    uint64_t good, refused;  /* values */
    uint64_t failed, silent; /* failed calls; those without an error message */
} counts;

static struct {
    const char *file, *group, *handler;
    int timeout_ms;
    bool forks;
} options;

/* Writes without calls that breaker makes fail. */
static void write_text(int fd, const char *text)
{
    syscall(SYS_write, fd, text, strlen(text));
}

static void fail(const char *what, uint64_t is, uint64_t expected)
{
    char text[300];
    breaker_call("breaker_stop");
    snprintf(text, sizeof text, "victim: %s: %" PRIu64 ", expected %" PRIu64 "\n", what, is, expected);
    write_text(STDERR_FILENO, text);
    _exit(1);
}

/* ---- The ledger ------------------------------------------------------------------------------ */

static uint64_t sum_of(const uint64_t *values, int count)
{
    uint64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

static weir_handler_stats check_handler(void)
{
    weir_handler_stats stats;
    if (weir_get_handler_stats(options.handler, &stats, sizeof stats) != 0)
        return (weir_handler_stats){0};
    uint64_t went = stats.delivered + sum_of(stats.dropped, WEIR_DROPPED_MAX) + stats.queued + stats.spooled +
                    stats.summing;
    if (stats.offered + stats.recovered != went)
        fail("where the handler's values went", went, stats.offered + stats.recovered);
    return stats;
}

static void check_ledger(void)
{
    weir_stats stats;
    check_handler();
    if (weir_get_stats(&stats, sizeof stats) != 0)
        return;
    if (stats.added != counts.good)
        fail("added", stats.added, counts.good);
    if (stats.added != stats.taken + stats.in_rings)
        fail("taken and in rings", stats.taken + stats.in_rings, stats.added);
    if (sum_of(stats.refused, WEIR_REFUSED_MAX) != counts.refused)
        fail("refused", sum_of(stats.refused, WEIR_REFUSED_MAX), counts.refused);
}

/* ---- Adding ---------------------------------------------------------------------------------- */

/* A failed call must set the last error. */
static int check_result(int result)
{
    if (result == 0)
        return 0;
    counts.failed++;
    if (result > 0 || result < WEIR_ERR_FIFO_NOT_CREATED)
        fail("a result that is not an error code", (uint64_t)-result, 0);
    counts.silent += !*weir_last_error();
    return result;
}

static void added(int result, uint64_t values)
{
    *(check_result(result) ? &counts.refused : &counts.good) += values;
}

static void *add(void *argument)
{
    static const weir_label labels[] = {{"route", "/x"}, {"method", "GET"}};
    const char *who = argument;
    char name[32];
    weir_stream *stream = weir_get_stream(options.group);
    weir_stream *labeled = weir_get_stream_labeled(options.group, labels, 2);
    weir_metric *metric = weir_get_metric(stream, "handle");
    weir_sample_spec spec = {
        .size = sizeof spec, .name = "sample", .value = 1, .cumulative = true, .metadata = "a note"};
    check_result(weir_describe(stream, "handle", "ms", "how long it check_result"));
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "%s%d", who, i % 7);
        added(weir_add_value(stream, name, i), 1);
        added(weir_add_int(labeled, name, i), 1);
        added(weir_metric_add(metric, i), 1);
        added(WEIR_EMIT(stream, {"a", 1}, {"b", 2}), 2);
        added(weir_add(stream, &spec), 1);
    }
    return NULL;
}

static void add_in_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, add, "other") == 0)
        pthread_join(thread, NULL);
    else
        add("other");
}

/* ---- The end --------------------------------------------------------------------------------- */

static uint64_t count_entries(const char *path)
{
    uint64_t count = 0;
    DIR *folder = opendir(path);
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* Threads and descriptors that the shutdown did not wait for may exist for a moment longer. */
static void check_entries(const char *path, uint64_t expected)
{
    enum { MAX_TRIES = 1000 };
    for (int i = 0; i < MAX_TRIES && count_entries(path) != expected; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    if (count_entries(path) != expected)
        fail(path, count_entries(path), expected);
}

static void report(void)
{
    char text[300];
    weir_handler_stats stats = check_handler();
    snprintf(text, sizeof text,
             "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
             "\n",
             stats.offered, stats.recovered, stats.delivered, sum_of(stats.dropped, WEIR_DROPPED_MAX),
             stats.spooled, counts.refused, counts.failed, counts.silent);
    write_text(STDOUT_FILENO, text);
}

/* Queues are empty afterwards, and later values are refused and counted. Returns whether everything was
 * delivered. */
static bool shut_down(void)
{
    bool delivered = check_result(weir_shutdown(options.timeout_ms)) == 0;
    check_ledger();
    weir_handler_stats stats = check_handler();
    if (stats.queued)
        fail("queued at the end", stats.queued, 0);
    added(weir_add_value(weir_get_stream(options.group), "late", 1), 1);
    check_ledger();
    report();
    return delivered;
}

static void fork_once(void)
{
    int status = 0;
    pid_t child = options.forks ? fork() : -1;
    if (child == 0) {
        counts.good = counts.refused = counts.failed = counts.silent = 0;
        add("child");
        check_ledger();
        shut_down();
        exit(0);
    }
    if (child > 0 && waitpid(child, &status, 0) == child && status)
        fail("how the child ended", (uint64_t)status, 0);
}

static bool breaks_stat(void)
{
    const char *kind = getenv("BREAK_KIND");
    return kind && strcmp(kind, "stat") == 0;
}

static void read_arguments(char **argv)
{
    options.file = argv[1];
    options.group = argv[2];
    options.handler = argv[3];
    options.timeout_ms = atoi(argv[4]);
    options.forks = !argv[5];
}

static bool run(void)
{
    check_result(weir_configure_file(options.file));
    add("first");
    check_ledger();
    check_result(weir_reload());
    check_result(weir_flush(options.timeout_ms));
    add_in_thread();
    fork_once();
    check_result(weir_configure("victim.other", "null", NULL));
    add("last");
    check_result(weir_configure_file(options.file));
    check_ledger();
    return shut_down();
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    read_arguments(argv);
    uint64_t descriptors = count_entries("/proc/self/fd"), threads = count_entries("/proc/self/task");
    breaker_call("breaker_start");
    bool delivered = run();
    breaker_call("breaker_stop");
    if (!delivered) /* a worker that did not stop in time is kept permanently, as documented */
        return 0;
    if (!breaks_stat()) /* a handler that cannot check whether a descriptor is its own does not close it */
        check_entries("/proc/self/fd", descriptors);
    check_entries("/proc/self/task", threads);
    return 0;
}
