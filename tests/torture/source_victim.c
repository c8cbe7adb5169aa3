/* source_victim: a program with sources: starts them, waits until its standard input is read, reloads, stops
 * them, shuts down. It continues if a call fails, and what was read must be added or counted.
 *
 * usage: source_victim FILE GROUP HANDLER MILLISECONDS [ignored]
 *
 * FILE is its configuration, whose first source is of the type stdin; the other arguments and the output are
 * those of victim. */

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

#include "breaker.h"

enum { LINES = 200 }; /* of standard input, each with a value */

static uint64_t failed, silent; /* calls; those without an error message */

/* Writes without calls that breaker makes fail. */
static void write_text(int fd, const char *text)
{
    syscall(SYS_write, fd, text, strlen(text));
}

static void fail(const char *what, uint64_t is, uint64_t expected)
{
    char text[300];
    breaker_call("breaker_stop");
    snprintf(text, sizeof text, "source_victim: %s: %" PRIu64 ", expected %" PRIu64 "\n", what, is, expected);
    write_text(STDERR_FILENO, text);
    _exit(1);
}

/* A failed call must set the last error. */
static int check_result(int result)
{
    failed += result != 0;
    silent += result != 0 && !*weir_last_error();
    return result;
}

static uint64_t sum_of(const uint64_t *values, int count)
{
    uint64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

/* ---- The ledger ------------------------------------------------------------------------------ */

/* Sources that were stopped keep their counts. Returns the values of all. */
static uint64_t check_sources(void)
{
    static const char *const names[] = {"in", "machine"};
    uint64_t added = 0;
    weir_source_stats stats;
    for (size_t i = 0; i < 2; i++) {
        if (weir_get_source_stats(names[i], &stats, sizeof stats))
            continue; /* it could not be made */
        uint64_t accounted = stats.added + stats.refused + stats.bad_lines;
        if (i == 0 && stats.state == WEIR_SOURCE_ENDED && accounted != LINES)
            fail("lines of the standard input that are accounted for", accounted, LINES);
        added += stats.added;
    }
    return added;
}

static weir_handler_stats check_ledger(const char *handler, bool is_whole)
{
    weir_stats process;
    weir_handler_stats stats;
    uint64_t added = check_sources();
    if (weir_get_stats(&process, sizeof process) == 0 && is_whole && process.added != added)
        fail("values of the sources that are added", process.added, added);
    if (weir_get_handler_stats(handler, &stats, sizeof stats) != 0)
        return (weir_handler_stats){0};
    uint64_t went = stats.delivered + sum_of(stats.dropped, WEIR_DROPPED_MAX) + stats.queued + stats.spooled;
    if (stats.offered + stats.recovered != went)
        fail("where the handler's values went", went, stats.offered + stats.recovered);
    return stats;
}

/* ---- The program ----------------------------------------------------------------------------- */

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

/* Returns whether all threads have ended. */
static bool run(const char *file, const char *handler, int timeout_ms)
{
    if (check_result(weir_configure_file(file)))
        check_result(weir_configure_file(file));
    if (check_result(weir_start_sources()))
        check_result(weir_start_sources());
    check_result(weir_wait_sources(timeout_ms / 10));
    bool stopped = check_result(weir_stop_sources(timeout_ms)) == 0;
    check_result(weir_flush(timeout_ms));
    bool delivered = check_result(weir_shutdown(timeout_ms)) == 0;
    weir_handler_stats stats = check_ledger(handler, stopped);
    char text[200];
    snprintf(text, sizeof text, "%" PRIu64 " 0 %" PRIu64 " %" PRIu64 " %" PRIu64 " 0 %" PRIu64 " %" PRIu64 "\n",
             stats.offered, stats.delivered, sum_of(stats.dropped, WEIR_DROPPED_MAX), stats.spooled, failed,
             silent);
    write_text(STDOUT_FILENO, text);
    return stopped && delivered;
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    uint64_t descriptors = count_entries("/proc/self/fd"), threads = count_entries("/proc/self/task");
    breaker_call("breaker_start");
    bool ended = run(argv[1], argv[3], atoi(argv[4]));
    breaker_call("breaker_stop");
    if (!ended) /* a thread that did not end in time is kept, as documented */
        return 0;
    const char *kind = getenv("BREAK_KIND");
    /* a handler that cannot check whether a descriptor is its own leaves it */
    if (!kind || strcmp(kind, "stat") != 0)
        check_entries("/proc/self/fd", descriptors);
    check_entries("/proc/self/task", threads);
    return 0;
}
