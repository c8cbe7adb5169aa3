/* measuring: the configuration of weir run itself: sources for the machine, the command and its values;
 * handlers of a file, if one is given, and the tally. */
#ifndef WEIR_TOOLS_MEASURING_H
#define WEIR_TOOLS_MEASURING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct measuring {
    const char *config; /* the file with handlers and routes; NULL: none */
    const char *name;   /* the command's, for the label */
    const char *pipe;   /* from which the command's values are read; NULL: they are not */
    int64_t every_ns;
    pid_t pid;
    const char *title;          /* of the report's page */
    const char *details, *html; /* the files of the report; NULL: none */
    const struct mlbench_run *mlbench;
};

/* Starts the sources, and waits until they read. The environment no longer has what would configure this
 * process. Returns false after printing why. */
bool measuring_start(const struct measuring *measuring);

/* What was read of the command's values, for the report at the end. */
struct measuring_lost {
    uint64_t bad_lines, refused; /* lines that could not be read; values that were not allowed */
    uint64_t unsent;             /* values that MLBench's server has not got */
};
struct measuring_lost measuring_lost(void);

#endif
