/* status_file: the file in which a process tells of itself.
 *
 * It is rewritten in place by one write, and never mapped: whatever others do to it, cutting it short or
 * filling the disk, a write may fail, but nothing can kill the program. It is opened anew for each access, and
 * only the descriptor that holds the lock stays open. A program that closes all descriptors takes that one
 * along, and may open something else under its number: so it is compared with the file each time.
 *
 * [the thread of status.h] unless it says otherwise. */
#ifndef WR_STATUS_FILE_H
#define WR_STATUS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/lock.h"

struct wr_error;

/* All zeros: there is none. */
struct wr_status_file {
    struct wr_lock disk; /* for all below; held for as long as a look at the disk takes */
    char *path;          /* NULL: there is none */
    int lock;            /* the descriptor that holds the file's lock */
    dev_t device;
    ino_t inode;
    size_t room; /* so many bytes surely have their place on the disk */
};

/* Writes a page into the file; makes the file in the setting's folder first, if there is none (any more).
 * false: the error tells why. */
bool wr_status_file_write(struct wr_status_file *file, const char *setting, const void *page, size_t length,
                          struct wr_error *error);

/* Removes the file, if there is one. */
void wr_status_file_remove(struct wr_status_file *file);

/* [fork] Before: waits until nobody is at the disk, so that the child knows of every descriptor. false: not by
 * deadline_ns. In the parent: lets go of what was held. In the child: lets go of the parent's file. */
bool wr_status_file_hold(struct wr_status_file *file, int64_t deadline_ns);
void wr_status_file_let_go(struct wr_status_file *file);
void wr_status_file_abandon(struct wr_status_file *file);

#endif
