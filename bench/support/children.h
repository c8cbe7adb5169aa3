/* children: the cost of forked children that end at once. */
#ifndef CHILDREN_H
#define CHILDREN_H

#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "measure.h"

static inline double children_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static inline int children_compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Returns the median time in microseconds from before the fork of a child, which calls act and exit(3), until
 * it has been waited for. */
static inline double children_measure(int count, void (*act)(void))
{
    double *elapsed = malloc((size_t)count * sizeof *elapsed);
    if (!elapsed)
        measure_fail("out of memory");
    for (int i = 0; i < count; i++) {
        int status = 0;
        double start = children_now_us();
        pid_t child = fork();
        if (child == 0) {
            act();
            exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status)
            measure_fail("a child has failed");
        elapsed[i] = children_now_us() - start;
    }
    qsort(elapsed, (size_t)count, sizeof *elapsed, children_compare);
    double median = elapsed[count / 2];
    free(elapsed);
    return median;
}

#endif
