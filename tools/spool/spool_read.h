/* spool_read: reads what handlers have left in a spool, and modifies nothing. */
#ifndef WEIR_TOOLS_SPOOL_READ_H
#define WEIR_TOOLS_SPOOL_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/owner_folder.h"
#include "segment/origin.h"

struct spool_read_file {
    char name[32];
    uint64_t bytes;
    uint32_t settled;           /* samples that have been delivered */
    uint64_t readable, damaged; /* the other samples */
    /* true also if other_version is set, and only then for the last file of a running process */
    bool is_damaged;
    uint32_t other_version;    /* the format that this program cannot read; 0: none */
    struct wr_sample_id first; /* the id of the first readable sample, if there is one */
};

/* A box of an owner_folder, which is of one process and one handler. */
struct spool_read_box {
    struct owner_folder folder;
    const char *place; /* the spool's folder; borrowed */
    char handler[256];
    /* the handler's name is as it is in the folder's name: shortened, or in other characters */
    bool is_altered;
    struct spool_read_file *files;
    size_t file_count;
    int problem; /* errno: the folder cannot be read */
};

extern const struct owner_folder_kind spool_read_kind;

/* Prints the undelivered samples as lines of JSON. Sets *complete to false if something was damaged or could
 * not be written. Returns false if nothing more can be printed. */
bool spool_read_print(const struct spool_read_box *box, bool *complete);

#endif
