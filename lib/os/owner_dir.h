/* owner_dir: a directory that one process owns, inside a directory that many share (a spool, a journal).
 *
 *     PLACE/                    the option `spool`, or settings.journal
 *         push.3f2a9c01.4711.0/     of handler "push" in process 4711
 *             lock                  locked with flock(2) as long as the process lives
 *             00000000000000000000.seg, ...
 *         push.3f2a9c01.4711.0-00000000000000000000.seg.bad    a damaged file that was set aside
 *
 * Only the process that holds the lock may touch the directory. The kernel releases the lock when the process
 * ends, so a directory whose lock is free is an orphan, and may be adopted. */
#ifndef WR_OWNER_DIR_H
#define WR_OWNER_DIR_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/own_fd.h"

struct wr_error;

/* The name of a file, by its number. */
#define WR_OWNER_DIR_FILE_FORMAT "%020" PRIu64 ".seg"

/* All zeros: not in use. */
struct wr_owner_dir {
    char *path; /* NULL: not in use */
    struct wr_own_fd lock;
    uint32_t files; /* counted by the caller */
};

/* Checks that nobody but the process's user and root may write or replace the place, see file_perms.
 * create: makes it with mode 0700 if it is missing. Returns false and sets the error if not; its code is
 * WEIR_OK if the place is missing. */
bool wr_owner_dir_check_place(const char *place, bool create, struct wr_error *error);

/* Makes a new directory for a handler, and locks it. Returns false and sets the error on failure. */
bool wr_owner_dir_make(struct wr_owner_dir *dir, const char *place, const char *handler,
                       struct wr_error *error);

/* Whether a name is that of a directory of the handler; handler NULL: of any handler. */
bool wr_owner_dir_is_name(const char *name, const char *handler);

/* Locks an orphaned directory. Returns false if its process lives, or it does not exist (any more). */
bool wr_owner_dir_adopt(struct wr_owner_dir *dir, const char *place, const char *name);

/* Whether the directory still exists and is locked by this process; a lock whose descriptor was closed is taken
 * again. */
bool wr_owner_dir_hold(struct wr_owner_dir *dir);

/* Returns the path of a file by its number; the caller frees it. NULL: out of memory. */
char *wr_owner_dir_file(const struct wr_owner_dir *dir, uint64_t number);

/* Returns the numbers of all files, ascending; the caller frees them. NULL: out of memory, or it cannot be
 * listed. */
uint64_t *wr_owner_dir_list(const struct wr_owner_dir *dir, size_t *count);

/* Moves a damaged file beside the directory; deletes it if too many are there already. Returns whether it was
 * moved. */
bool wr_owner_dir_keep_bad(const struct wr_owner_dir *dir, uint64_t number);

/* Deletes the directory if it is empty, and releases the lock. */
void wr_owner_dir_remove(struct wr_owner_dir *dir);

/* Releases the lock, so that another process can adopt the directory. */
void wr_owner_dir_leave(struct wr_owner_dir *dir);

/* [fork] Closes the lock's descriptor in a forked child; the parent keeps the lock. */
void wr_owner_dir_abandon(const struct wr_owner_dir *dir);

#endif
