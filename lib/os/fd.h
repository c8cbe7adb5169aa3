/* fd: opens files, and compares descriptors and paths with a file that was opened before.
 *
 * A program may run with its standard streams closed. A file that were opened as descriptor 1 or 2 then would
 * receive what the program and weir print, so no descriptor returned from here is below 3. */
#ifndef WR_FD_H
#define WR_FD_H

#include <stdbool.h>
#include <sys/types.h>

/* Moves a descriptor that has just been made, with close-on-exec, above the standard streams. Returns the new
 * one; -1, with errno, if fd is, or if there is none. */
int wr_fd_above_stdio(int fd);

/* As open(2) and openat(2), always with O_CLOEXEC. mode: 0 without O_CREAT. */
int wr_fd_open(const char *path, int flags, mode_t mode);
int wr_fd_open_at(int folder, const char *name, int flags, mode_t mode);

/* Whether the path leads to that file; a symbolic link is not followed. */
bool wr_fd_path_is_file(const char *path, dev_t device, ino_t inode);

#endif
