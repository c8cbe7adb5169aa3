/* journal_read: reads what processes have left in a journal, and modifies nothing. */
#ifndef WEIR_TOOLS_JOURNAL_READ_H
#define WEIR_TOOLS_JOURNAL_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segment/origin.h"

struct journal_read_handler {
    const char *name;
    uint64_t values;           /* that are not delivered */
    struct wr_sample_id first; /* the id of the oldest of these */
};

/* The folder of one process. */
struct journal_read_box {
    const char *name;
    uint32_t pid;
    int64_t created_ns;
    bool in_use;                           /* the process is running */
    bool damaged;                          /* true also if other_version is set */
    uint32_t other_version;                /* the format that this program cannot read; 0: none */
    uint64_t in_rings;                     /* values that had not reached the queues */
    struct journal_read_handler *handlers; /* those with undelivered values */
    size_t handler_count;
};

/* Calls visit for each box, oldest first, until it returns false. Returns false with errno if the journal
 * cannot be read. */
bool journal_read_walk(const char *place, bool (*visit)(const struct journal_read_box *box, void *ctx),
                       void *ctx);

#endif
