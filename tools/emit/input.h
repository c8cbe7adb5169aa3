/* input: adds values from standard input. */
#ifndef WEIR_TOOLS_INPUT_H
#define WEIR_TOOLS_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"

struct input_counts {
    uint64_t lines, values;
    uint64_t invalid;  /* lines, or parts of them, that were not used */
    uint64_t left_out; /* single values of lines that were used */
    bool failed;       /* an error, reported on stderr, ended the input */
};

/* Adds every line until the input ends, or until SIGINT or SIGTERM. What is invalid is reported and skipped. */
void input_add_all(const struct wr_parser_type *type, const struct wr_patterns *patterns,
                   const struct record_defaults *defaults, struct input_counts *counts);

#endif
