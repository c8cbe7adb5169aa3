/* measure: what every measured program does in the same way: reading its task, threads, clocks, bursts, tails,
 * and the report, one JSON object on stdout.
 *
 * A program brings a subject: how values are added by one library. The loop around the library's call is the
 * subject's, compiled with the call in it. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the command line says, as key=value. */
struct task {
    const char *mode;   /* bursts: calls that fit the queue, with pauses between them
                           tails:  the same, each call timed by itself
                           lines:  as fast as possible, until everything is in the file */
    const char *way;    /* the subject's own: which of its calls */
    const char *file;   /* where lines go; "": nowhere */
    const char *config; /* weir's configuration */
    const char *format; /* text, json */
    long threads;
    long bursts;
    long values;      /* lines: of all threads together */
    long names;       /* how many are used in turn */
    long name_length; /* 0: the name is "latency" */
    long event;       /* values a call */
    long handlers;    /* weir's are named h1, h2, ... */
    bool random;      /* values of 17 digits instead of three decimals */
    bool cpu_time;    /* bursts: the thread's own time, for more threads than processors */
};

struct subject {
    /* Makes everything ready that a program has ready before its first value. */
    void (*open)(const struct task *task);

    /* [each thread] What it needs for adding; never freed. */
    void *(*begin)(const struct task *task);

    /* [each thread] Adds the values. */
    void (*add)(void *state, const double *values, size_t count);

    /* Whether what was added has left the queues that calls go by. NULL: there are none. */
    bool (*settled)(void);

    /* Returns when everything is in the file. */
    void (*close)(const struct task *task);

    /* How many values have arrived, as far as the subject itself can tell; NULL: it cannot. */
    long (*count)(const struct task *task);
};

/* The program's main. */
int measure(int argc, char **argv, const struct subject *subject);

/* Says on stderr what is wrong, and ends the program. */
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
