/* spool_box: a process's own folder inside the folder of a spool.
 *
 *     PLACE/                    settings of the handler: `spool`
 *         push.3f2a9c01.4711.0/     a box: of handler "push" in process 4711
 *             lock                  held, with flock(2), as long as the process lives
 *             00000000000000000000.seg, ...
 *         push.3f2a9c01.4711.0-00000000000000000000.seg.bad    a damaged file that was kept
 *
 * Whoever holds its lock may do with a box whatever he likes; nobody else touches it. A process that ends
 * leaves its lock to the kernel, so a box whose lock is free has lost its process, and may be adopted. */
#ifndef WR_OWNER_DIR_H
#define WR_OWNER_DIR_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct wr_error;

/* The name of a file, by its number. */
#define WR_OWNER_DIR_FILE_FORMAT "%020" PRIu64 ".seg"

/* All zeros: not in use. */
struct wr_owner_dir {
    char *path;   /* NULL: not in use */
    int lock;     /* -1: not held */
    dev_t device; /* of the lock */
    ino_t inode;
    uint32_t files; /* that somebody knows of; see wr_owner_dir_remove */
};

/* Whether a spool may be there: nobody but the process's user, root, and a group of the process's own may write
 * to it. create: makes the folder, if it is missing, with mode 0700. false: the error tells why; its code is
 * WEIR_OK where it is simply missing. */
bool wr_owner_dir_check_place(const char *place, bool create, struct wr_error *error);

/* Makes a new box of a handler, and locks it. false: the error tells why. */
bool wr_owner_dir_make(struct wr_owner_dir *box, const char *place, const char *handler,
                       struct wr_error *error);

/* Whether a name inside the place is that of a box of the handler. handler NULL: of any. */
bool wr_owner_dir_is_name(const char *name, const char *handler);

/* Locks a box that has lost its process. false: it has not, or there is no such box (any more). */
bool wr_owner_dir_adopt(struct wr_owner_dir *box, const char *place, const char *name);

/* Whether the box is still there and still locked; a lock that somebody has closed is taken again. */
bool wr_owner_dir_hold(struct wr_owner_dir *box);

/* The path of a file in the box, by its number; the caller frees it. NULL without memory. */
char *wr_owner_dir_file(const struct wr_owner_dir *box, uint64_t number);

/* The numbers of all files in the box, rising; the caller frees them. NULL without memory. */
uint64_t *wr_owner_dir_list(const struct wr_owner_dir *box, size_t *count);

/* Moves a file out of the box, to be kept beside it; one too many is deleted instead. Answers whether it was
 * kept. */
bool wr_owner_dir_keep_bad(const struct wr_owner_dir *box, uint64_t number);

/* Deletes the box, unless there is something in it, and gives up the lock. */
void wr_owner_dir_remove(struct wr_owner_dir *box);

/* Gives up the lock, and leaves the box to whoever wants it. */
void wr_owner_dir_leave(struct wr_owner_dir *box);

/* [fork] Closes the lock in a forked child: it is the parent's. */
void wr_owner_dir_abandon(const struct wr_owner_dir *box);

#endif
