/* status_file: the status file of the process.
 *
 * It is rewritten in place by one write, and never mapped: if other processes truncate it or fill the disk, a
 * write may fail, but the program is not killed by a signal. It is opened for each access; only the descriptor
 * that holds the lock stays open. A program that closes all descriptors may reuse its number, so it is compared
 * with the file before each use.
 *
 * Thread: status, except where noted. */
#ifndef WR_STATUS_FILE_H
#define WR_STATUS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/lock.h"
#include "os/own_fd.h"

struct wr_error;

/* All zeros: there is none. */
struct wr_status_file {
    struct wr_lock disk;   /* protects all fields below; held during accesses to the disk, and forks */
    char *path;            /* NULL: there is none */
    struct wr_own_fd lock; /* holds the file's lock */
    size_t room;           /* bytes for which disk space is allocated */
};

/* Writes a page to the file, which is created in the folder of the setting if it does not exist. Returns false
 * with the error set. */
bool wr_status_file_write(struct wr_status_file *file, const char *setting, const void *page, size_t length,
                          struct wr_error *error);

/* Removes the file, if there is one. */
void wr_status_file_remove(struct wr_status_file *file);

/* [fork] In the child: closes the parent's file. */
void wr_status_file_abandon(struct wr_status_file *file);

#endif
