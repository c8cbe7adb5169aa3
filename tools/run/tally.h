/* tally: a handler type that lives in the command: it keeps what a table of all series needs, in bounded
 * memory. The worker's thread adds, others read. */
#ifndef WEIR_TOOLS_TALLY_H
#define WEIR_TOOLS_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "common/bins.h"
#include "summary/sketch.h"

#define TALLY_TYPE "run_tally"

/* The label of what was measured, whose value is the command's name: groups of the job may be named alike. */
#define TALLY_LABEL "command"

/* A series of the job. */
struct tally_series {
    const weir_series *series; /* kept */
    struct wr_sketch sketch;   /* count, sum, smallest, largest, quantiles of the finite values */
    uint64_t others;           /* NaN and infinite ones */
    struct bins bins;          /* since the job began */
};

/* What was measured of the machine and of the command. Sums of increments, and levels. */
struct tally_measured {
    double cpu_s;
    double memory_now, memory_most, memory_sum, memory_count;
    double read_bytes, written_bytes;
    double received_bytes, sent_bytes, loop_bytes; /* of the machine */
    bool has_disk, has_network;
};

struct tally {
    struct tally_series **series; /* in the order of their first values */
    size_t count;
    uint64_t values; /* of the job */
    struct tally_measured measured;
};

/* Registers the type. name: of the command, as in the label; kept. Returns 0 or a weir_error. */
int tally_register(const char *name, int64_t start_ns);

/* Levels of the command's memory count from here on: before, the process was not the command yet. */
void tally_set_begun(int64_t time_ns);

/* Calls read with what there is, which does not change meanwhile. */
void tally_read(void (*read)(void *ctx, const struct tally *tally), void *ctx);

#endif
