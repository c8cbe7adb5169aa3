/* journal_read: reads what processes have left in a journal, and modifies nothing. */
#ifndef WEIR_TOOLS_JOURNAL_READ_H
#define WEIR_TOOLS_JOURNAL_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/owner_folder.h"
#include "segment/origin.h"

struct journal_read_handler {
    const char *name;
    uint64_t values;           /* that are not delivered */
    struct wr_sample_id first; /* the id of the oldest of these */
};

/* A box of an owner_folder. */
struct journal_read_box {
    struct owner_folder folder;
    bool damaged;                          /* true also if other_version is set */
    uint32_t other_version;                /* the format that this program cannot read; 0: none */
    uint64_t in_rings;                     /* values that had not reached the queues */
    struct journal_read_handler *handlers; /* those with undelivered values */
    size_t handler_count;
};

extern const struct owner_folder_kind journal_read_kind;

#endif
