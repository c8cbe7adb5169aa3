/* comparison: whether the values of each series differ between two files, or may as well be noise. */
#ifndef WEIR_TOOLS_COMPARISON_H
#define WEIR_TOOLS_COMPARISON_H

#include "common/figures.h"
#include "statistics.h"

struct wr_buffer;

/* The difference of the means, b - a, with its interval of 95 % confidence by Welch's t-test: B. L. Welch: The
 * generalization of "Student's" problem when several different population variances are involved, Biometrika 34
 * (1947). It takes the values for independent of each other. */
struct comparison {
    double difference, least, most; /* NAN: one has fewer than two values */
};

struct comparison comparison_of(const struct statistics_series *a, const struct statistics_series *b);

/* The factor of the standard error that holds 95 % of Student's distribution; freedom: at least 1. */
double comparison_student(double freedom);

/* Appends a row for each series of either. Both are sorted. */
void comparison_put(struct wr_buffer *out, const struct statistics *a, const struct statistics *b,
                    const struct figures_screen *screen);

/* Prints an array with an object for each series. Returns `result`, or EXIT_FAILURE if that failed. */
int comparison_print_json(const struct statistics *a, const struct statistics *b, int result);

#endif
