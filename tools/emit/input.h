/* input: adds values from standard input, one event per line. */
#ifndef WEIR_TOOLS_INPUT_H
#define WEIR_TOOLS_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h>

/* For lines without their own. */
struct input_defaults {
    const char *group; /* NULL: each line has to name its group */
    const weir_label *labels;
    size_t label_count;
};

struct input_counts {
    uint64_t lines, values, invalid;
    bool failed; /* a read error, reported on stderr, ended the input */
};

/* Adds every line until the input ends, or until SIGINT or SIGTERM. Invalid lines are reported and skipped. */
void input_add_all(const struct input_defaults *defaults, struct input_counts *counts);

#endif
