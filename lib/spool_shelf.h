/* spool_shelf: the boxes and files that a spool consists of, in the order in which they will be read. */
#ifndef WR_SPOOL_SHELF_H
#define WR_SPOOL_SHELF_H

#include <stdbool.h>
#include <stdint.h>

#include "spool_box.h"

struct wr_error;

enum { WR_SPOOL_SHELF_BOXES = 64 };

struct wr_spool_file {
    struct wr_spool_file *next;
    struct wr_spool_box *box;
    uint64_t number;         /* its name: the sequence of its first sample */
    uint32_t count, settled; /* samples */
    uint64_t bytes;
    bool own; /* written by this process */
};

/* All zeros: empty. */
struct wr_spool_shelf {
    struct wr_spool_box boxes[WR_SPOOL_SHELF_BOXES];
    struct wr_spool_box *own; /* that new files go to; NULL: none */
    char *place;              /* that it is in */
    struct wr_spool_file *first, *last;
    uint64_t bytes; /* of all files */
};

/* Leaves everything on disk to whoever wants it. */
void wr_spool_shelf_fini(struct wr_spool_shelf *shelf);

/* Makes sure that there is a box of this process's own in the place. false: the error tells why not. *same: it
 * is the one that there was already. */
bool wr_spool_shelf_make_sure(struct wr_spool_shelf *shelf, const char *place, const char *handler, bool *same,
                              struct wr_error *error);

/* A box that is not in use; NULL: all are. */
struct wr_spool_box *wr_spool_shelf_free_box(struct wr_spool_shelf *shelf);

/* Takes in a file, which the shelf owns from then on: behind what others left, in the order of numbers. */
void wr_spool_shelf_put(struct wr_spool_shelf *shelf, struct wr_spool_file *file);

/* Deletes a file, or, damaged, has it kept beside its box; and the box, if that was its last. Answers whether
 * it was kept. */
bool wr_spool_shelf_finish(struct wr_spool_shelf *shelf, struct wr_spool_file *file, bool damaged);

/* Deletes the box of its own, if there is nothing in it. */
void wr_spool_shelf_tidy(struct wr_spool_shelf *shelf);

/* The same, and gives up all locks: what is there is whoever's wants it. */
void wr_spool_shelf_leave(struct wr_spool_shelf *shelf);

/* [fork] Closes the locks in a forked child. */
void wr_spool_shelf_abandon(const struct wr_spool_shelf *shelf);

#endif
