/* run_table: what a command has used, and its metrics, as a table that a person reads. */
#ifndef WEIR_TOOLS_RUN_TABLE_H
#define WEIR_TOOLS_RUN_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "job.h"
#include "measuring.h"

struct wr_buffer;
struct figures_screen;
struct tally;

struct run_result {
    char **arguments;
    const struct job *job; /* reaped */
    int64_t duration_ns;
    struct measuring_lost lost;
    const struct mlbench_run *mlbench;
    const char *state; /* of the run, if there is one; NULL: it could not be set */
};

/* Appends the table. */
void run_table_put(struct wr_buffer *out, const struct run_result *result, const struct tally *tally,
                   const struct figures_screen *screen);

/* Appends one line with how it is going, cut to the screen's width. */
void run_table_put_progress(struct wr_buffer *out, int64_t duration_ns, const struct tally *tally,
                            const struct figures_screen *screen);

#endif
