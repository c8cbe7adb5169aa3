/* file_lock: locks of files that several processes write, with a time limit, and the errors of this handler
 * that have no errno. */
#ifndef WEIR_PLUGINS_FILE_LOCK_H
#define WEIR_PLUGINS_FILE_LOCK_H

#include <stdbool.h>

#include <weir/handler.h>

/* Values for the functions of this folder that return 0 or errno. */
enum file_error {
    FILE_ERROR_LOCKED = -1, /* another process keeps the lock */
    FILE_ERROR_FIFO = -2,
    FILE_ERROR_DEVICE = -3,
    FILE_ERROR_SOCKET = -4,
};

/* Describes an error: an errno or an enum file_error. Static. */
const char *wr_file_error_text(int error);

/* operation: LOCK_SH or LOCK_EX of flock(2). Waits for a lock of another process, two seconds at most, or 200
 * ms once the handler must stop; meanwhile the program can fork. If the file system does not support locks,
 * continues without one. Returns 0 or FILE_ERROR_LOCKED. */
int wr_file_lock_take(const weir_host *host, int fd, int operation);

/* One attempt, for emit_now: returns false if another process has a lock that excludes this one. */
bool wr_file_lock_try(int fd, int operation);

/* Even if it was not taken. */
void wr_file_lock_release(int fd);

#endif
