/* positions: a file that tells how far other files were read, so that a restart goes on from there.
 *
 *     weir file positions 1
 *     DEVICE INODE OFFSET LENGTH HASH PATH
 *
 * A file is recognised by its inode and by a hash of its first bytes (LENGTH of them, at most 256): an inode
 * may have been given to another file since. The path is for people, and for when the device's number has
 * changed. */
#ifndef WEIR_PLUGINS_SOURCE_FILE_POSITIONS_H
#define WEIR_PLUGINS_SOURCE_FILE_POSITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { POSITIONS_HASHED = 256 };

struct position {
    uint64_t device, inode;
    uint64_t offset;
    uint64_t hash;
    uint32_t length; /* of what was hashed */
    char *path;
};

/* All zeros: none. */
struct positions {
    struct position *items;
    uint32_t count, room;
    bool is_first; /* there was no file */
};

/* Finds the default file of a source: in $STATE_DIRECTORY, $XDG_STATE_HOME/weir or ~/.local/state/weir. Returns
 * a text that the caller frees. NULL: none of them is known, or out of memory. */
char *positions_default_path(const char *source);

/* Reads a file. *fault: the first line that is not understood; 0: none. Returns 0 or errno. */
int positions_load(struct positions *positions, const char *path, unsigned *fault);

/* Replaces the file. Returns 0 or errno. */
int positions_save(const struct positions *positions, const char *path);

/* Appends. Returns false if out of memory. */
bool positions_add(struct positions *positions, const struct position *position);

/* Finds how far an open file was read. Returns false if it is not there, or is not the same any more. */
bool positions_find(const struct positions *positions, int fd, const struct stat *status, const char *path,
                    uint64_t *offset);

/* Hashes the first bytes of an open file. Returns false if it has fewer. */
bool positions_hash(int fd, uint32_t length, uint64_t *hash);

void positions_clear(struct positions *positions);

#endif
