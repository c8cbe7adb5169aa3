/* spool_index: the directories and files that a spool consists of, in the order in which they are read: first
 * the files that dead processes left, then those of this process by position. */
#ifndef WR_SPOOL_INDEX_H
#define WR_SPOOL_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "os/owner_dir.h"

struct wr_error;

enum { WR_SPOOL_INDEX_DIRS = 64 };

struct wr_spool_file {
    struct wr_spool_file *next;
    struct wr_owner_dir *dir;
    uint64_t number;         /* its name: the position of its first sample */
    uint32_t count, settled; /* samples */
    uint64_t values;         /* of those not settled; a damaged one counts as one */
    uint64_t bytes;
    bool own;     /* written by this process */
    bool damaged; /* not all of it is blocks; known of adopted files only */
};

/* All zeros: empty. */
struct wr_spool_index {
    struct wr_owner_dir dirs[WR_SPOOL_INDEX_DIRS];
    struct wr_owner_dir *own; /* for new files; NULL: none */
    char *place;              /* the parent of `own` */
    struct wr_spool_file *first, *last;
    uint64_t bytes;           /* of all files */
    bool other_version_found; /* files of another format version were found, and left as they are */
};

/* Result of a search. */
struct wr_spool_found {
    uint64_t samples, values;
    bool more;              /* not everything was adopted: WR_SPOOL_INDEX_DIRS are in use */
    bool kept_bad;          /* a damaged file was set aside */
    uint32_t other_version; /* the first search that found files of another format: their version; else 0 */
};

/* Frees the index and releases all locks. The files stay. */
void wr_spool_index_fini(struct wr_spool_index *index);

/* Makes sure that this process has a directory of its own in the place. Sets *same if it is still the same one.
 * Returns false and sets the error if it cannot be made. */
bool wr_spool_index_ensure_own(struct wr_spool_index *index, const char *place, const char *handler, bool *same,
                               struct wr_error *error);

/* Adopts the directories of the handler whose processes are dead, and adds their files, the oldest directory
 * first. Returns false and sets the error if the place cannot be searched; a missing place is not an error. */
bool wr_spool_index_adopt(struct wr_spool_index *index, const char *place, const char *handler,
                          struct wr_spool_found *found, struct wr_error *error);

/* Adds a file and takes ownership of it. */
void wr_spool_index_put(struct wr_spool_index *index, struct wr_spool_file *file);

/* Deletes a file, or sets it aside if it is damaged; also deletes its directory if that was the last file.
 * Returns whether it was set aside. */
bool wr_spool_index_finish(struct wr_spool_index *index, struct wr_spool_file *file, bool damaged);

/* Deletes the directory of this process if it is empty. */
void wr_spool_index_tidy(struct wr_spool_index *index);

/* The same, and releases all locks, so that other processes can adopt the directories. */
void wr_spool_index_leave(struct wr_spool_index *index);

/* [fork] Closes the locks in a forked child. */
void wr_spool_index_abandon(const struct wr_spool_index *index);

#endif
