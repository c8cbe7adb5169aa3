/* measure: the common part of all measured programs: reads the task, runs threads, bursts, tails and lines, and
 * prints the report, one JSON object, on stdout.
 *
 * Each program defines a subject, which adds values with one library. The subject contains the loop around the
 * library's call, so that both are compiled together. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The arguments of the command line, key=value. */
struct task {
    const char *mode;   /* bursts: calls that fit the queue, with pauses between them
                           tails:  the same, with each call timed separately
                           lines:  as fast as possible, until everything is in the file */
    const char *way;    /* which call of the library; defined by the subject */
    const char *file;   /* output file; "": none */
    const char *config; /* weir's configuration */
    const char *format; /* text, json */
    long threads;
    long bursts;
    long values;      /* lines: total of all threads */
    long names;       /* how many names are used in turn */
    long name_length; /* 0: the name is "latency" */
    long event;       /* values per call */
    long handlers;    /* number of weir's handlers, which are named h1, h2, ... */
    bool random;      /* values with 17 digits instead of three decimals */
    bool cpu_time;    /* bursts: measure CPU time of the thread, for more threads than processors */
};

struct subject {
    /* Does the setup that a program does before its first value. */
    void (*open)(const struct task *task);

    /* [each thread] Returns the state for add; never freed. */
    void *(*begin)(const struct task *task);

    /* [each thread] Adds the values. */
    void (*add)(void *state, const double *values, size_t count);

    /* Returns whether the queues that calls write to are empty. NULL: there are no queues. */
    bool (*settled)(void);

    /* Returns when everything is in the file. */
    void (*close)(const struct task *task);

    /* Returns how many values arrived. NULL: the subject cannot count them. */
    long (*count)(const struct task *task);
};

/* The main function of the program. */
int measure(int argc, char **argv, const struct subject *subject);

/* Returns the most memory that the process has had, in KiB. */
long measure_peak_kb(void);

/* Prints an error to stderr and exits with status 1. */
#ifdef __cplusplus
[[noreturn]]
#else
_Noreturn
#endif
void measure_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif

#endif
