/* sketch: measures what a value costs in a quantile sketch, beside a histogram with fixed bounds.
 *
 * For each distribution it prints nanoseconds per value and how many values or bins the sketch has. */

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "summary/sketch.h"

enum { VALUES = 1 << 20, ROUNDS = 10, BUCKETS = 15 };

/* OpenTelemetry's bounds for times in milliseconds. */
static const double bounds[BUCKETS] = {0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000};

static uint64_t buckets[BUCKETS + 1];

static void add_to_histogram(double value)
{
    unsigned i = 0;
    while (i < BUCKETS && value > bounds[i])
        i++;
    buckets[i]++;
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double draw_unit(void)
{
    return (double)(random() + 1) / ((double)RAND_MAX + 2);
}

static double draw_lognormal(double mean, double deviation)
{
    return exp(mean + deviation * sqrt(-2 * log(draw_unit())) * cos(2 * M_PI * draw_unit()));
}

static void measure(const char *name, const double *values)
{
    struct wr_sketch sketch = {0};
    double sketched = INFINITY, counted = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now_ns();
        for (int i = 0; i < VALUES; i++)
            if (wr_sketch_add(&sketch, values[i]))
                abort();
        double middle = now_ns();
        for (int i = 0; i < VALUES; i++)
            add_to_histogram(values[i]);
        double end = now_ns();
        sketched = fmin(sketched, (middle - begin) / VALUES);
        counted = fmin(counted, (end - middle) / VALUES);
    }
    printf("%-28s %6.1f ns in a sketch of %4u entries, %6.1f ns in a histogram of %d buckets\n", name, sketched,
           sketch.entries, counted, BUCKETS + 1);
    wr_sketch_fini(&sketch);
}

int main(void)
{
    static const struct {
        const char *name;
        double mean, deviation;
    } rows[] = {{"constant", 3, 0},
                {"times of a server", 3, 0.5},
                {"lognormal, sigma 2", 3, 2},
                {"lognormal, sigma 8", 3, 8}};
    double *values = malloc(VALUES * sizeof *values);
    for (size_t row = 0; values && row < sizeof rows / sizeof *rows; row++) {
        for (int i = 0; i < VALUES; i++)
            values[i] = draw_lognormal(rows[row].mean, rows[row].deviation);
        measure(rows[row].name, values);
    }
    free(values);
    return 0;
}
