/* spool_read: reads what handlers have left in a spool, and modifies nothing. */
#ifndef WEIR_TOOLS_SPOOL_READ_H
#define WEIR_TOOLS_SPOOL_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segment/origin.h"

struct spool_read_file {
    char name[32];
    uint64_t bytes;
    uint32_t settled;           /* samples that have been delivered */
    uint64_t readable, damaged; /* the other samples */
    /* true also if other_version is set, and only then for the last file of a running process */
    bool is_damaged;
    uint32_t other_version;     /* the format that this program cannot read; 0: none */
    struct wr_sample_id first;  /* the id of the first readable sample, if there is one */
};

/* The folder of one process and one handler. */
struct spool_read_box {
    const char *place, *name; /* the spool's folder, and the name in it */
    char handler[256];
    /* the handler's name is as it is in the folder's name: shortened, or in other characters */
    bool is_altered;
    uint32_t pid;
    int64_t created_ns; /* 0: not known */
    bool in_use;        /* the process is running */
    struct spool_read_file *files;
    size_t file_count;
};

/* Calls visit for each box, oldest first, until it returns false. Returns false with errno if the spool cannot
 * be read. */
bool spool_read_walk(const char *place, bool (*visit)(const struct spool_read_box *box, void *ctx), void *ctx);

/* A visitor that prints the undelivered samples as lines of JSON. ctx: a bool that becomes false if something
 * was damaged or could not be written. */
bool spool_read_print(const struct spool_read_box *box, void *ctx);

#endif
