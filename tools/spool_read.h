/* spooled: walks through what handlers have left in a folder, and changes nothing. */
#ifndef WEIR_TOOLS_SPOOL_READ_H
#define WEIR_TOOLS_SPOOL_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segment/origin.h"

struct spool_read_file {
    char name[32];
    uint64_t bytes;
    uint32_t settled;          /* samples that have been delivered */
    uint64_t good, lost;       /* the others: those that can be read, and those that cannot */
    bool damaged;              /* also if it is of another version */
    uint32_t other_version;    /* of the format; 0: this program's own */
    struct wr_sample_id first; /* the identity of the first value that can be read; if good */
};

/* The folder of one process and one handler. */
struct spool_read_box {
    const char *place, *name;
    char handler[256];
    uint32_t pid;
    int64_t created_ns; /* 0: nothing in it can be read */
    bool in_use;        /* its process is alive */
    struct spool_read_file *files;
    size_t file_count;
};

/* Visits all boxes of a folder, the oldest first, until a visit answers false. false: the folder cannot be
 * read, errno tells why. */
bool spool_read_walk(const char *place, bool (*visit)(const struct spool_read_box *box, void *ctx), void *ctx);

/* A visit that prints the samples that are not delivered as lines of JSON. ctx: a bool, turned to false where
 * that failed, or something was lost. */
bool spool_read_print(const struct spool_read_box *box, void *ctx);

#endif
