/* victim: a program that does with weir what programs do, once: configures it, adds in all ways and from two
 * threads, reloads, flushes, forks, configures again, shuts down. Whatever fails meanwhile, it goes on, and the
 * ledger is right whenever it can be read.
 *
 * usage: victim FILE GROUP HANDLER MILLISECONDS [nofork]
 *
 * FILE is its configuration, HANDLER the one whose account it looks at; flushes and the shutdown take
 * MILLISECONDS at most. It prints a line for each process: offered, recovered, delivered, dropped, spooled,
 * refused, how many calls failed, and how many of these without words. It ends with 0, or with words on stderr
 * and 1. */

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

/* Of one process; what was added before a fork is the parent's. */
static struct {
    uint64_t good, refused;  /* values */
    uint64_t failed, silent; /* calls; those without words */
} did;

static struct {
    const char *file, *group, *handler;
    int timeout_ms;
    bool forks;
} told;

/* As the program itself says it, also when nothing can be had any more. */
static void say(int fd, const char *text)
{
    syscall(SYS_write, fd, text, strlen(text));
}

static void fail(const char *what, uint64_t is, uint64_t expected)
{
    char text[300];
    breaker_tell("breaker_stop");
    snprintf(text, sizeof text, "victim: %s: %" PRIu64 ", expected %" PRIu64 "\n", what, is, expected);
    say(STDERR_FILENO, text);
    _exit(1);
}

/* ---- The ledger ------------------------------------------------------------------------------ */

static uint64_t sum_of(const uint64_t *counts, int count)
{
    uint64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += counts[i];
    return sum;
}

static weir_handler_stats check_handler(void)
{
    weir_handler_stats stats;
    if (weir_get_handler_stats(told.handler, &stats, sizeof stats) != 0)
        return (weir_handler_stats){0};
    uint64_t went = stats.delivered + sum_of(stats.dropped, WEIR_DROPPED_MAX) + stats.queued + stats.spooled;
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
    if (stats.added != did.good)
        fail("added", stats.added, did.good);
    if (stats.added != stats.taken + stats.in_rings)
        fail("taken and in rings", stats.taken + stats.in_rings, stats.added);
    if (sum_of(stats.refused, WEIR_REFUSED_MAX) != did.refused)
        fail("refused", sum_of(stats.refused, WEIR_REFUSED_MAX), did.refused);
}

/* ---- Adding ---------------------------------------------------------------------------------- */

/* A call that failed has said why. */
static int took(int result)
{
    if (result == 0)
        return 0;
    did.failed++;
    if (result > 0 || result < WEIR_ERR_FIFO_NOT_CREATED)
        fail("an answer that is no error", (uint64_t)-result, 0);
    did.silent += !*weir_last_error();
    return result;
}

static void added(int result, uint64_t values)
{
    *(took(result) ? &did.refused : &did.good) += values;
}

static void *add(void *argument)
{
    static const weir_label labels[] = {{"route", "/x"}, {"method", "GET"}};
    const char *who = argument;
    char name[32];
    weir_stream *stream = weir_get_stream(told.group);
    weir_stream *labeled = weir_get_stream_labeled(told.group, labels, 2);
    weir_metric *metric = weir_get_metric(stream, "handle");
    weir_sample_spec spec = {
        .size = sizeof spec, .name = "sample", .value = 1, .cumulative = true, .metadata = "a note"};
    took(weir_describe(stream, "handle", "ms", "how long it took"));
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "%s%d", who, i % 7);
        added(weir_add_value(stream, name, i), 1);
        added(weir_add_int(labeled, name, i), 1);
        added(weir_metric_add(metric, i), 1);
        added(WEIR_EMIT(stream, {"a", 1}, {"b", 2}), 2);
        added(weir_add_sample(stream, &spec), 1);
    }
    return NULL;
}

static void add_by_a_thread(void)
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

/* What a shutdown did not wait for may be there for a moment longer. */
static void check_entries(const char *path, uint64_t expected)
{
    enum { PATIENCE = 1000 };
    for (int i = 0; i < PATIENCE && count_entries(path) != expected; i++)
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
             stats.offered, stats.recovered, stats.delivered, sum_of(stats.dropped, WEIR_DROPPED_MAX), stats.spooled,
             did.refused, did.failed, did.silent);
    say(STDOUT_FILENO, text);
}

/* Nothing is left in queues then, and what comes later is refused and counted. Answers whether everything was
 * delivered. */
static bool shut_down(void)
{
    bool delivered = took(weir_shutdown(told.timeout_ms)) == 0;
    check_ledger();
    weir_handler_stats stats = check_handler();
    if (stats.queued)
        fail("queued at the end", stats.queued, 0);
    added(weir_add_value(weir_get_stream(told.group), "late", 1), 1);
    check_ledger();
    report();
    return delivered;
}

static void fork_once(void)
{
    int status = 0;
    pid_t child = told.forks ? fork() : -1;
    if (child == 0) {
        did.good = did.refused = did.failed = did.silent = 0;
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

static void listen_to(char **argv)
{
    told.file = argv[1];
    told.group = argv[2];
    told.handler = argv[3];
    told.timeout_ms = atoi(argv[4]);
    told.forks = !argv[5];
}

static bool live(void)
{
    took(weir_configure_file(told.file));
    add("first");
    check_ledger();
    took(weir_reload());
    took(weir_flush(told.timeout_ms));
    add_by_a_thread();
    fork_once();
    took(weir_configure("victim.other", "null", NULL));
    add("last");
    took(weir_configure_file(told.file));
    check_ledger();
    return shut_down();
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    listen_to(argv);
    uint64_t descriptors = count_entries("/proc/self/fd"), threads = count_entries("/proc/self/task");
    breaker_tell("breaker_start");
    bool delivered = live();
    breaker_tell("breaker_stop");
    if (!delivered) /* a thread that was late for the end of its handler is kept for good, as documented */
        return 0;
    if (!breaks_stat()) /* a handler that cannot tell whether a descriptor is its own leaves it alone */
        check_entries("/proc/self/fd", descriptors);
    check_entries("/proc/self/task", threads);
    return 0;
}
