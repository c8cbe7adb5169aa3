/* comparison: whether the values of each series differ between two files, or may as well be noise. */
#ifndef WEIR_TOOLS_COMPARISON_H
#define WEIR_TOOLS_COMPARISON_H

#include "common/figures.h"
#include "statistics.h"

struct wr_buffer;

/* Appends a row for each series of either. Both are sorted. */
void comparison_put(struct wr_buffer *out, const struct statistics *a, const struct statistics *b,
                    const struct figures_screen *screen);

/* Prints an array with an object for each series. Returns `result`, or EXIT_FAILURE if that failed. */
int comparison_print_json(const struct statistics *a, const struct statistics *b, int result);

#endif
