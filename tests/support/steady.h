/* steady: checks for long runs: the ledger is exact at any time, and memory and descriptors do not grow. */
#ifndef STEADY_H
#define STEADY_H

#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <weir/weir.h>

#include "ledger.h"

/* A shorter run is not checked for growth: it has not warmed up. */
enum { STEADY_LEAST_S = 60 };

/* The growth allowed between early and late: memory grows in pages and arenas, and a few descriptors are open
 * only for a moment. */
enum { STEADY_SLACK_KB = 1024, STEADY_SLACK_PART = 20, STEADY_SLACK_DESCRIPTORS = 4 };

static inline _Noreturn void steady_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    _exit(1);
}

static inline double steady_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline void steady_sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* ---- The ledger ------------------------------------------------------------------------------ */

/* Returns false if no configuration has named the handler yet. */
static inline bool steady_read_handler(const char *name, weir_handler_stats *stats)
{
    char text[LEDGER_ROOM];
    if (weir_get_handler_stats(name, stats, sizeof *stats) != 0)
        return false;
    if (!ledger_is_balanced(stats))
        steady_fail("%s does not balance: %s", name, ledger_format(stats, text));
    if (stats->faults)
        steady_fail("%s: %" PRIu64 " contract violations", name, stats->faults);
    return true;
}

static inline weir_stats steady_read_process(void)
{
    weir_stats stats;
    if (weir_get_stats(&stats, sizeof stats) != 0)
        steady_fail("weir_get_stats failed: %s", weir_last_error());
    if (stats.added != stats.taken + stats.in_rings)
        steady_fail("added %" PRIu64 " != taken %" PRIu64 " + in rings %" PRIu64, stats.added, stats.taken,
                    stats.in_rings);
    return stats;
}

/* Checks the ledgers of the process and of all handlers. */
static inline void steady_check_ledger(const char *const *handlers, size_t count)
{
    weir_handler_stats stats;
    steady_read_process();
    for (size_t i = 0; i < count; i++)
        steady_read_handler(handlers[i], &stats);
}

/* ---- Memory and descriptors ------------------------------------------------------------------ */

/* The maxima in the second and in the last fifth of a run; the first fifth is the warm-up. */
struct steady {
    long early_kb, late_kb;
    long early_descriptors, late_descriptors;
};

static inline long steady_resident_kb(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        steady_fail("memory cannot be read");
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static inline long steady_descriptors(void)
{
    long count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        steady_fail("descriptors cannot be counted");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count - 3; /* without ".", ".." and the descriptor of the folder itself */
}

static inline void steady_raise(long *most, long value)
{
    if (value > *most)
        *most = value;
}

/* part: the elapsed fraction of the run. */
static inline void steady_watch(struct steady *steady, double part)
{
    long now_kb = steady_resident_kb(), descriptors = steady_descriptors();
    if (part >= 0.2 && part < 0.4) {
        steady_raise(&steady->early_kb, now_kb);
        steady_raise(&steady->early_descriptors, descriptors);
    }
    if (part >= 0.8) {
        steady_raise(&steady->late_kb, now_kb);
        steady_raise(&steady->late_descriptors, descriptors);
    }
}

static inline void steady_check_growth(const struct steady *steady, double seconds)
{
    if (seconds < STEADY_LEAST_S)
        return;
    if (steady->late_kb > steady->early_kb + steady->early_kb / STEADY_SLACK_PART + STEADY_SLACK_KB)
        steady_fail("memory grew from %ld to %ld KiB", steady->early_kb, steady->late_kb);
    if (steady->late_descriptors > steady->early_descriptors + STEADY_SLACK_DESCRIPTORS)
        steady_fail("open descriptors grew from %ld to %ld", steady->early_descriptors,
                    steady->late_descriptors);
}

#endif
