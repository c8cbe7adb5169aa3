/* spooled: walks through what handlers have left in a folder, and changes nothing. */
#ifndef WEIR_TOOLS_SPOOLED_H
#define WEIR_TOOLS_SPOOLED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spooled_file {
    char name[32];
    uint64_t bytes;
    uint32_t settled;    /* samples that have been delivered */
    uint64_t good, lost; /* the others: those that can be read, and those that cannot */
    bool damaged;
};

/* The folder of one process and one handler. */
struct spooled_box {
    const char *place, *name;
    char handler[256];
    uint32_t pid;
    int64_t created_ns; /* 0: nothing in it can be read */
    bool in_use;        /* its process is alive */
    struct spooled_file *files;
    size_t file_count;
};

/* Visits all boxes of a folder, the oldest first, until a visit answers false. false: the folder cannot be
 * read, errno tells why. */
bool spooled_walk(const char *place, bool (*visit)(const struct spooled_box *box, void *ctx), void *ctx);

/* A visit that prints the samples that are not delivered as lines of JSON. ctx: a bool, turned to false where
 * that failed, or something was lost. */
bool spooled_print(const struct spooled_box *box, void *ctx);

#endif
