/* output_file: the file that is written to. Used only by the handler's worker, except for
 * wr_output_file_abandon.
 *
 * Other processes may append to the same file, and may rotate, delete or truncate it. */
#ifndef FILE_OUTPUT_FILE_H
#define FILE_OUTPUT_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <weir/handler.h>

#include "../system.h"
#include "settings.h"

struct output_file {
    const weir_host *host;
    const struct settings *settings;
    char path[PATH_MAX]; /* of the open file; with date fields: expanded for dated_s */
    time_t dated_s;
    bool truncate; /* empty the file when it is opened next */
    struct wr_own_fd own;
    bool local;          /* its file system is on this machine */
    bool fresh;          /* not written to since it was opened */
    bool torn;           /* the file may end with a partial line */
    off_t end;           /* the end of our last write */
    bool dirty;          /* written data may not be on disk yet */
    int sync_error;      /* errno of a failed sync; 0: none, or handled */
    unsigned opened;     /* number of times that a file was opened */
    bool logged_missing; /* that the path cannot be reopened has been logged */
    int64_t checked_ms;
};

void wr_output_file_init(struct output_file *output, const weir_host *host, const struct settings *settings);

/* Ensures that a file is open, that the descriptor is still ours, and that the path named it at most half a
 * second ago. Returns 0 or errno. */
int wr_output_file_ensure(struct output_file *output);

/* Checks the path at once, and opens the new file if the old one was rotated or deleted, or if the date has
 * changed. If that fails, the old file stays open. */
void wr_output_file_follow(struct output_file *output);

/* Opens the file at the path and closes the old one. If that fails, the old one stays open. Returns 0 or
 * errno. */
int wr_output_file_reopen(struct output_file *output);

/* Checks whether the path can be opened, without creating or emptying the file and without waiting. *exists:
 * the file exists. Returns 0 or errno. */
int wr_output_file_probe(const struct output_file *output, bool *exists);

/* Closes the file, unless the program has closed it. */
void wr_output_file_close(struct output_file *output);

/* [fork] */
void wr_output_file_abandon(const struct output_file *output);

/* Whether the path still names the open file. */
bool wr_output_file_is_in_place(const struct output_file *output);

/* Caller holds a lock of the file. *written: bytes written. Returns 0 or errno. */
int wr_output_file_write(struct output_file *output, const char *data, size_t length, size_t *written);

/* Caller holds the exclusive lock. Detects a partial line that another process left when it died while
 * writing. */
void wr_output_file_check_end(struct output_file *output, off_t size);

/* Terminates a partial line that could not be removed, before anything else is written. Returns 0 or errno. */
int wr_output_file_end_line(struct output_file *output);

/* Removes a partial line, the last `length` bytes that we wrote, if they are still the end of the file.
 * Otherwise the next write terminates the line first. Releases the lock. */
void wr_output_file_remove_tail(struct output_file *output, size_t length);

/* Writes in place of all of the above, from emit_now: waits for nobody. Returns false where the others have to
 * do it; nothing is written then. */
bool wr_output_file_write_now(struct output_file *output, const char *data, size_t length);

/* Forces written data to disk. Returns 0 or errno. */
int wr_output_file_sync(struct output_file *output);

#endif
