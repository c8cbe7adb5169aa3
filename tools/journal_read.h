/* journaled: the boxes of a journal, as the command shows them. */
#ifndef WEIR_TOOLS_JOURNAL_READ_H
#define WEIR_TOOLS_JOURNAL_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segment/origin.h"

struct journal_read_handler {
    const char *name;
    uint64_t values;           /* that it has not settled */
    struct wr_sample_id first; /* the identity of the oldest of these */
};

struct journal_read_box {
    const char *name;
    uint32_t pid;
    int64_t created_ns;
    bool in_use;                           /* its process runs */
    bool damaged;                          /* also if it is of another version */
    uint32_t other_version;                /* of the format; 0: this program's own */
    uint64_t in_rings;                     /* values that had not reached the queues */
    struct journal_read_handler *handlers; /* that have not settled everything */
    size_t handler_count;
};

/* Visits all boxes, the oldest first, until visit answers false. false: errno tells why not. */
bool journal_read_walk(const char *place, bool (*visit)(const struct journal_read_box *box, void *ctx),
                       void *ctx);

/* Delivers what is there by the configuration of a file, or, with NULL, of WEIR_CONFIG, for at most timeout_ms
 * (-1: as long as it takes). false: it was said why that could not be done. */
bool journal_read_replay(const char *place, const char *file, int64_t timeout_ms);

#endif
