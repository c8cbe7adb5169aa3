#include "status/status_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text/buffer.h"
#include "os/clock.h"
#include "text/error.h"
#include "status/status_folder.h"
#include "os/fd.h"

enum { TRIES = 10 };

/* The path is reset last, as it marks the file as existing. */
static void forget(struct wr_status_file *file)
{
    wr_own_fd_close(&file->lock);
    free(file->path);
    file->path = NULL;
}

/* ---- Creating -------------------------------------------------------------------------------- */

/* Writes a whole page, which allocates its disk space. Returns 0 or errno. */
static int write_all(int fd, const void *page, size_t length)
{
    ssize_t written = pwrite(fd, page, length, 0);
    return written < 0 ? errno : (size_t)written < length ? ENOSPC : 0;
}

/* Creates the file under a hidden name, and renames it when it is complete. Returns 0 or errno. */
static int make(struct wr_status_file *file, int folder, const char *name, const void *page, size_t length)
{
    char hidden[WR_STATUS_FILE_ROOM + 1];
    snprintf(hidden, sizeof hidden, ".%s", name);
    int fd = wr_fd_open_at(folder, hidden, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (!wr_own_fd_set(&file->lock, fd))
        return errno;
    int problem = fchmod(fd, 0600) != 0 || flock(fd, LOCK_EX | LOCK_NB) != 0 ? errno : 0;
    if (!problem)
        problem = write_all(fd, page, length);
    /* ENOENT: another process has removed it as left behind, before it was locked */
    if (!problem && renameat(folder, hidden, folder, name) != 0)
        problem = errno;
    if (problem) {
        unlinkat(folder, hidden, 0);
        wr_own_fd_close(&file->lock);
        return problem;
    }
    file->room = length;
    return 0;
}

static bool make_in(struct wr_status_file *file, int folder, const char *path, const void *page, size_t length,
                    struct wr_error *error)
{
    char name[WR_STATUS_FILE_ROOM];
    struct wr_buffer whole = {0};
    int problem = EEXIST;
    for (int i = 0; i < TRIES && (problem == EEXIST || problem == ENOENT || problem == EWOULDBLOCK); i++) {
        wr_status_folder_put_name(name, getpid(), (uint32_t)(wr_clock_wall_ns() / 1000));
        problem = make(file, folder, name, page, length);
    }
    if (problem)
        return wr_error_refuse(error, WEIR_ERR_CONFIG, "%s: %s", path, wr_error_system_text(problem));
    wr_buffer_put_format(&whole, "%s/%s", path, name);
    file->path = wr_buffer_take(&whole);
    if (file->path)
        return true;
    wr_error_no_memory(error, NULL);
    unlinkat(folder, name, 0);
    wr_own_fd_close(&file->lock);
    return false;
}

static bool make_anywhere(struct wr_status_file *file, const char *setting, const void *page, size_t length,
                          struct wr_error *error)
{
    char path[WR_STATUS_PATH_ROOM];
    int folder = wr_status_folder_open(setting, path, error);
    if (folder < 0)
        return false;
    wr_status_folder_tidy(folder);
    bool made = make_in(file, folder, path, page, length, error);
    close(folder);
    return made;
}

/* ---- Rewriting ------------------------------------------------------------------------------- */

/* Locks the file again if the program has closed the descriptor with the lock. If a reader is just testing the
 * lock, this is retried with the next write. */
static void keep_lock(struct wr_status_file *file, int *fd)
{
    if (wr_own_fd_is_open(&file->lock) || flock(*fd, LOCK_EX | LOCK_NB) != 0)
        return;
    file->lock.fd = *fd;
    *fd = -1;
}

/* Allocates the space first, so that the old page stays complete if there is none for a longer one. */
static int rewrite(struct wr_status_file *file, int fd, const void *page, size_t length)
{
    int problem = length > file->room ? posix_fallocate(fd, 0, (off_t)length) : 0;
    if (problem)
        return problem;
    if (length > file->room)
        file->room = length;
    return write_all(fd, page, length);
}

/* Returns false if the file was removed or replaced. *problem: 0 or errno. */
static bool write_again(struct wr_status_file *file, const void *page, size_t length, int *problem)
{
    int fd = wr_fd_open(file->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (!wr_fd_is_file(fd, file->lock.device, file->lock.inode)) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    *problem = rewrite(file, fd, page, length);
    keep_lock(file, &fd);
    if (fd >= 0)
        close(fd);
    return true;
}

bool wr_status_file_write(struct wr_status_file *file, const char *setting, const void *page, size_t length,
                          struct wr_error *error)
{
    int problem = 0;
    wr_lock_enter(&file->disk);
    bool there = file->path && write_again(file, page, length, &problem);
    if (there && problem)
        wr_error_set(error, WEIR_ERR_CONFIG, "%s: %s", file->path, wr_error_system_text(problem));
    if (!there && file->path)
        forget(file);
    bool written = there ? !problem : make_anywhere(file, setting, page, length, error);
    wr_lock_leave(&file->disk);
    return written;
}

/* Unlocks the file explicitly, as a child forked by _Fork may have a copy of the descriptor. */
void wr_status_file_remove(struct wr_status_file *file)
{
    wr_lock_enter(&file->disk);
    if (file->path) {
        if (wr_fd_path_is_file(file->path, file->lock.device, file->lock.inode))
            unlink(file->path);
        if (wr_own_fd_is_open(&file->lock))
            flock(file->lock.fd, LOCK_UN);
        forget(file);
    }
    wr_lock_leave(&file->disk);
}

/* ---- Fork ------------------------------------------------------------------------------------ */

/* Frees nothing, since another thread may have held the lock of malloc: the memory of the path is leaked. */
void wr_status_file_abandon(struct wr_status_file *file)
{
    wr_own_fd_abandon(&file->lock);
    *file = (struct wr_status_file){0};
}
