#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../output.h"
#include "pipe.h"
#include "repair.h"

/* ---- Results --------------------------------------------------------------------------------- */

static const char *name_type(mode_t type)
{
    switch (type & S_IFMT) {
    case S_IFLNK: return "a symbolic link";
    case S_IFREG: return "a regular file";
    case S_IFDIR: return "a folder";
    case S_IFSOCK: return "a socket";
    default: return "a device";
    }
}

static void describe(const char *path, const struct pipe_result *result, char *text, size_t room)
{
    const char *error = wr_system_strerror(result->error);
    switch (result->state) {
    case PIPE_MISSING: snprintf(text, room, "the named pipe %.160s does not exist", path); break;
    case PIPE_NO_READER: snprintf(text, room, "the named pipe %.160s has no reader", path); break;
    case PIPE_FULL:
        snprintf(text, room, "the named pipe %.160s is full: its reader reads nothing", path);
        break;
    case PIPE_WRONG_TYPE:
        snprintf(text, room, "%.160s is %s, not a named pipe", path, name_type(result->type));
        break;
    case PIPE_CREATE_FAILED: snprintf(text, room, "create %.160s: %s", path, error); break;
    case PIPE_OPEN_FAILED: snprintf(text, room, "open %.160s: %s", path, error); break;
    default: snprintf(text, room, "write %.160s: %s", path, error); break;
    }
}

void wr_pipe_fail(const struct pipe *pipe, const struct pipe_result *result, int code, weir_outcome *outcome)
{
    char *text = outcome->reason;
    const size_t room = sizeof outcome->reason;
    outcome->code = code;
    if (pipe->own.fd >= 0 || !pipe->paths[1]) {
        describe(pipe->path, result, text, room);
        return;
    }
    for (size_t i = 0, length = 0; i < PIPE_PATHS && length < room; i++) {
        if (i)
            snprintf(text + length, room - length, "; ");
        length = i ? strlen(text) : 0;
        describe(pipe->paths[i], &pipe->tried[i], text + length, room - length);
        length = strlen(text);
    }
}

/* ---- Identity -------------------------------------------------------------------------------- */

bool wr_pipe_is_in_place(struct pipe *pipe)
{
    struct stat status;
    pipe->checked_ms = wr_output_now_ms();
    return lstat(pipe->path, &status) == 0 && status.st_dev == pipe->own.device &&
           status.st_ino == pipe->own.inode;
}

bool wr_pipe_has_reader(const struct pipe *pipe)
{
    struct pollfd entry = {.fd = pipe->own.fd, .events = POLLOUT};
    return poll(&entry, 1, 0) < 0 || !(entry.revents & POLLERR);
}

/* ---- Creating and opening -------------------------------------------------------------------- */

/* mkfifo applies the umask, which belongs to the whole program and must not be changed. A pipe of another
 * user, which may have replaced the new one meanwhile, is not changed. */
static void set_mode(const struct pipe *pipe)
{
    char name[40];
    struct stat status;
    int fd = wr_fd_open(pipe->path, O_PATH | O_NOFOLLOW, 0);
    if (fd < 0)
        return;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    bool owned = fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode) && status.st_uid == geteuid();
    if (owned && (status.st_mode & 07777) != pipe->mode && chmod(name, pipe->mode) != 0)
        pipe->host->log(
            pipe->host, WEIR_LOG_WARNING,
            "mode: the permissions of %s are %04o and cannot be set to %04o (%s); the pipe is used as it is",
            pipe->path, (unsigned)status.st_mode & 07777, (unsigned)pipe->mode, wr_system_strerror(errno));
    close(fd);
}

static struct pipe_result create_pipe(const struct pipe *pipe)
{
    if (mkfifo(pipe->path, pipe->mode) == 0)
        set_mode(pipe);
    else if (errno != EEXIST)
        return wr_pipe_result(PIPE_CREATE_FAILED, errno);
    return wr_pipe_result(PIPE_READY, 0);
}

/* Checks the file type before opening: opening a device may have side effects. */
struct pipe_result wr_pipe_check_path(const struct pipe *pipe, bool create)
{
    struct stat status;
    if (lstat(pipe->path, &status) != 0) {
        if (errno != ENOENT)
            return wr_pipe_result(PIPE_OPEN_FAILED, errno);
        return create ? create_pipe(pipe) : wr_pipe_result(PIPE_MISSING, 0);
    }
    if (!S_ISFIFO(status.st_mode))
        return (struct pipe_result){.state = PIPE_WRONG_TYPE, .type = status.st_mode};
    return wr_pipe_result(PIPE_READY, 0);
}

static struct pipe_result open_error_result(int error)
{
    switch (error) {
    case ENXIO: return wr_pipe_result(PIPE_NO_READER, 0);
    case ENOENT: return wr_pipe_result(PIPE_MISSING, 0);
    case ELOOP: return (struct pipe_result){.state = PIPE_WRONG_TYPE, .type = S_IFLNK};
    default: return wr_pipe_result(PIPE_OPEN_FAILED, error);
    }
}

static void set_size(struct pipe *pipe)
{
    if (!pipe->size || fcntl(pipe->own.fd, F_SETPIPE_SZ, pipe->size) >= 0 || pipe->logged_size)
        return;
    pipe->logged_size = true;
    pipe->host->log(pipe->host, WEIR_LOG_WARNING,
                    "pipe_size: the capacity of %s cannot be set to %d bytes (%s); it stays unchanged",
                    pipe->path, pipe->size, wr_system_strerror(errno));
}

static struct pipe_result open_path(struct pipe *pipe, bool create)
{
    struct stat status;
    struct pipe_result result = wr_pipe_check_path(pipe, create);
    if (result.state)
        return result;
    int fd = wr_fd_open(pipe->path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY, 0);
    if (fd < 0)
        return open_error_result(errno);
    /* the path may have been replaced since wr_pipe_check_path */
    if (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) {
        close(fd);
        return (struct pipe_result){.state = PIPE_WRONG_TYPE, .type = status.st_mode};
    }
    pipe->own = (struct wr_own_fd){fd, status.st_dev, status.st_ino};
    pipe->checked_ms = wr_output_now_ms();
    set_size(pipe);
    if (!wr_repair_start(pipe)) {
        wr_own_fd_close(&pipe->own);
        return wr_pipe_result(PIPE_OPEN_FAILED, ENOMEM);
    }
    return wr_pipe_result(PIPE_READY, 0);
}

static struct pipe_result find_path(struct pipe *pipe, bool create)
{
    struct pipe_result result = wr_pipe_check_path(pipe, false);
    if (!result.state && faccessat(AT_FDCWD, pipe->path, W_OK, AT_EACCESS) != 0)
        return wr_pipe_result(PIPE_OPEN_FAILED, errno);
    if (result.state != PIPE_MISSING || !create)
        return result;
    int error = wr_output_check_create(pipe->path, false);
    return error ? wr_pipe_result(PIPE_CREATE_FAILED, error) : wr_pipe_result(PIPE_READY, ENOENT);
}

/* ---- Places ---------------------------------------------------------------------------------- */

/* The states for which it helps most to wait come first. */
static int rank_of(enum pipe_state state)
{
    return state == PIPE_READY ? 0 : state == PIPE_NO_READER ? 1 : state == PIPE_MISSING ? 2 : 3;
}

/* Tries the places in turn until there is a pipe that can be used. It is created only if there is nothing at
 * any of them. Returns the best result, and leaves its place in pipe->path. */
static struct pipe_result try_paths(struct pipe *pipe,
                                    struct pipe_result (*try_path)(struct pipe *pipe, bool create))
{
    size_t best = 0;
    for (size_t i = 0; i < PIPE_PATHS && pipe->paths[i]; i++) {
        bool is_last = i + 1 == PIPE_PATHS || !pipe->paths[i + 1];
        bool none_before = i == 0 || pipe->tried[best].state == PIPE_MISSING;
        pipe->path = pipe->paths[i];
        pipe->tried[i] = try_path(pipe, pipe->create && is_last && none_before);
        if (rank_of(pipe->tried[i].state) < rank_of(pipe->tried[best].state))
            best = i;
        if (!pipe->tried[best].state)
            break;
    }
    pipe->path = pipe->paths[best];
    return pipe->tried[best];
}

struct pipe_result wr_pipe_find(struct pipe *pipe)
{
    return try_paths(pipe, find_path);
}

struct pipe_result wr_pipe_follow(struct pipe *pipe)
{
    if (!wr_own_fd_is_open(&pipe->own) || !wr_pipe_is_in_place(pipe))
        wr_own_fd_close(&pipe->own);
    return pipe->own.fd < 0 ? try_paths(pipe, open_path) : wr_pipe_result(PIPE_READY, 0);
}

struct pipe_result wr_pipe_reach(struct pipe *pipe)
{
    struct pipe_result result = wr_pipe_follow(pipe);
    if (result.state)
        return result;
    wr_repair_wait(pipe);
    return wr_pipe_has_reader(pipe) ? result : wr_repair(pipe);
}

/* Lines that wait were in the pipe before, as delivered values, or as lines of other programs: so the core
 * cannot offer them again. */
void wr_pipe_fini(struct pipe *pipe)
{
    if (pipe->waiting.length)
        pipe->host->log(
            pipe->host, WEIR_LOG_WARNING,
            "%zu bytes of lines that did not fit into %s again after it had lost its reader are lost",
            pipe->waiting.length, pipe->path);
    free(pipe->written.data);
    free(pipe->waiting.data);
}
