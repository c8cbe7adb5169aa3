/* file_mark: which state of which file a path leads to: two marks differ when the file was changed or replaced.
 */
#ifndef WR_FILE_MARK_H
#define WR_FILE_MARK_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

struct wr_file_mark {
    dev_t device;
    ino_t inode; /* 0: there was no such file */
    off_t size;
    struct timespec changed;
};

/* Follows symbolic links. To notice every change of what is read, take the mark before reading. A missing file
 * has a mark of zeros. */
struct wr_file_mark wr_file_mark_take(const char *path);

bool wr_file_mark_is_same(const struct wr_file_mark *a, const struct wr_file_mark *b);

#endif
