/* tail: a file to which lines are appended, read as it grows. */
#ifndef WEIR_PLUGINS_SOURCE_FILE_TAIL_H
#define WEIR_PLUGINS_SOURCE_FILE_TAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <weir/source.h>

#include "../pump.h"
#include "../system.h"

struct tail {
    char *path;
    struct pump pump;
    struct wr_own_fd own; /* the file */
    int watch;            /* of inotify; -1: none */
    uint64_t offset;      /* up to which it was read */
    uint64_t added;       /* the end of the last record of which the values were added */
    uint64_t marked;      /* the same, when the mark was taken that is asked for */
    uint64_t settled;     /* the same, of values that are settled */
    uint64_t hash;        /* of the first bytes, see positions.h */
    uint32_t hashed;
    int read_fault;   /* that was logged last, until it can be read; errno */
    bool is_dirty;    /* there may be more to read */
    bool is_found;    /* its path leads to it */
    bool is_ended;    /* its path does not, and all was read */
    int64_t quiet_ns; /* since when nothing has come; monotonic */
};

/* Opens a file at an offset, of which the caller knows that a line begins there. fd: of the file, taken.
 * has_header: the first line is read again if the offset is behind it. NULL: out of memory; fd is closed. */
struct tail *tail_open(const weir_host *host, const char *path, int fd, const struct stat *status,
                       uint64_t offset, bool has_header);

/* Returns the beginning of the line that is not complete at the end of a file. */
uint64_t tail_find_last_line(int fd, uint64_t size);

/* Reads once and adds what was read. *truncated: whether it was found to be shorter than before, and is read
 * from its beginning. */
enum pump_result tail_read(struct tail *tail, bool *truncated);

/* The file will not grow any more: adds a last line without a newline. Returns false if there is no room yet.
 */
bool tail_finish(struct tail *tail);

/* Adds what was read before. Returns false if there is no room yet. */
bool tail_resume(struct tail *tail);

/* Closes the file: fd is -1 before the descriptor is. The caller then takes the tail out of its list, and frees
 * it. */
void tail_close(struct tail *tail);
void tail_free(struct tail *tail);

#endif
