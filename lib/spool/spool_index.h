/* spool_shelf: the boxes and files that a spool consists of, in the order in which they will be read. */
#ifndef WR_SPOOL_INDEX_H
#define WR_SPOOL_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "os/owner_dir.h"

struct wr_error;

enum { WR_SPOOL_INDEX_BOXES = 64 };

struct wr_spool_file {
    struct wr_spool_file *next;
    struct wr_owner_dir *box;
    uint64_t number;         /* its name: the sequence of its first sample */
    uint32_t count, settled; /* samples */
    uint64_t bytes;
    bool own; /* written by this process */
};

/* All zeros: empty. */
struct wr_spool_index {
    struct wr_owner_dir boxes[WR_SPOOL_INDEX_BOXES];
    struct wr_owner_dir *own; /* that new files go to; NULL: none */
    char *place;              /* that it is in */
    struct wr_spool_file *first, *last;
    uint64_t bytes;           /* of all files */
    bool other_version_found; /* files of another format; they are left as they are */
};

/* Leaves everything on disk to whoever wants it. */
void wr_spool_index_fini(struct wr_spool_index *index);

/* Makes sure that there is a box of this process's own in the place. false: the error tells why not. *same: it
 * is the one that there was already. */
bool wr_spool_index_make_sure(struct wr_spool_index *index, const char *place, const char *handler, bool *same,
                              struct wr_error *error);

/* A box that is not in use; NULL: all are. */
struct wr_owner_dir *wr_spool_index_free_box(struct wr_spool_index *index);

/* Takes in a file, which the index owns from then on: behind what others left, in the order of numbers. */
void wr_spool_index_put(struct wr_spool_index *index, struct wr_spool_file *file);

/* Deletes a file, or, damaged, has it kept beside its box; and the box, if that was its last. Answers whether
 * it was kept. */
bool wr_spool_index_finish(struct wr_spool_index *index, struct wr_spool_file *file, bool damaged);

/* Deletes the box of its own, if there is nothing in it. */
void wr_spool_index_tidy(struct wr_spool_index *index);

/* The same, and gives up all locks: what is there is whoever's wants it. */
void wr_spool_index_leave(struct wr_spool_index *index);

/* [fork] Closes the locks in a forked child. */
void wr_spool_index_abandon(const struct wr_spool_index *index);

#endif
