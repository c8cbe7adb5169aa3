/* input: values from standard input, an event a line. */
#ifndef WEIR_TOOLS_INPUT_H
#define WEIR_TOOLS_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h>

/* What counts for lines that do not say it themselves. */
struct input_standards {
    const char *group; /* NULL: each line has to say it */
    const weir_label *labels;
    size_t label_count;
};

/* What was read. */
struct input_counts {
    uint64_t lines, values, wrong;
    bool failed; /* it could not be read to its end, which was said */
};

/* Adds every line until the input ends, or SIGINT or SIGTERM comes. Lines that are wrong are said, and skipped.
 */
void input_add_all(const struct input_standards *standards, struct input_counts *counts);

#endif
