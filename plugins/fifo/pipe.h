/* pipe: the named pipe of the handler type "fifo" and its place: what is there, whether it has a reader, and
 * whether the path still names it. One look at a time; nothing here waits. */
#ifndef WEIR_PLUGINS_FIFO_PIPE_H
#define WEIR_PLUGINS_FIFO_PIPE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../output.h"

/* What is in the way of writing to it. */
enum obstacle {
    NOTHING,
    ABSENT,     /* there is no pipe */
    UNREAD,     /* it has no reader */
    FULL,       /* its reader does not read */
    WRONG,      /* there is something else in its place */
    NOT_MADE,   /* it cannot be created */
    NOT_OPENED, /* or opened */
    BROKEN,     /* or written to */
};

struct trouble {
    enum obstacle what;
    int problem; /* errno, where that says more */
    mode_t type; /* WRONG: of what is there */
};

struct pipe {
    const weir_host *host;
    const char *path;
    bool create;
    mode_t mode;  /* of one that is created */
    int size;     /* 0: as it is */
    int fd;       /* -1: not open */
    dev_t device; /* of the open one */
    ino_t inode;
    int64_t looked_ms; /* when the path was last compared with it */
    bool said_size;    /* that the size cannot be had */
};

static struct trouble trouble_of(enum obstacle what, int problem)
{
    return (struct trouble){.what = what, .problem = problem};
}

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

/* Answers the length. */
static int put_trouble(const struct pipe *pipe, const struct trouble *trouble, char *words, size_t room)
{
    const char *path = pipe->path, *problem = system_words(trouble->problem);
    switch (trouble->what) {
    case ABSENT: return snprintf(words, room, "nobody has created the named pipe %.160s", path);
    case UNREAD: return snprintf(words, room, "nobody reads the named pipe %.160s", path);
    case FULL: return snprintf(words, room, "the reader of the named pipe %.160s takes nothing", path);
    case WRONG: return snprintf(words, room, "%.160s is %s, not a named pipe", path, name_type(trouble->type));
    case NOT_MADE: return snprintf(words, room, "create %.160s: %s", path, problem);
    case NOT_OPENED: return snprintf(words, room, "open %.160s: %s", path, problem);
    default: return snprintf(words, room, "write %.160s: %s", path, problem);
    }
}

/* ---- Still the same pipe? -------------------------------------------------------------------- */

static bool pipe_is_ours(const struct pipe *pipe)
{
    return system_is_file(pipe->fd, pipe->device, pipe->inode);
}

static bool pipe_is_in_place(struct pipe *pipe)
{
    struct stat status;
    pipe->looked_ms = output_now_ms();
    return lstat(pipe->path, &status) == 0 && status.st_dev == pipe->device && status.st_ino == pipe->inode;
}

static bool pipe_has_reader(const struct pipe *pipe)
{
    struct pollfd wanted = {.fd = pipe->fd, .events = POLLOUT};
    return poll(&wanted, 1, 0) < 0 || !(wanted.revents & POLLERR);
}

static void pipe_let_go(struct pipe *pipe)
{
    if (pipe->fd >= 0 && pipe_is_ours(pipe))
        close(pipe->fd);
    pipe->fd = -1;
}

/* ---- Creating and opening -------------------------------------------------------------------- */

/* mkfifo leaves to the umask what it takes away, and the umask belongs to the whole program. Since somebody may
 * have put another pipe there in between, one that is not ours is left as it is. */
static void set_mode(const struct pipe *pipe)
{
    char name[40];
    struct stat status;
    int fd = system_open(pipe->path, O_PATH | O_NOFOLLOW, 0);
    if (fd < 0)
        return;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    bool ours = fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode) && status.st_uid == geteuid();
    if (ours && (status.st_mode & 07777) != pipe->mode && chmod(name, pipe->mode) != 0)
        pipe->host->log(pipe->host, WEIR_LOG_WARNING, "%s has the mode %04o, not %04o: %s", pipe->path,
                        (unsigned)status.st_mode & 07777, (unsigned)pipe->mode, system_words(errno));
    close(fd);
}

static struct trouble make_pipe(const struct pipe *pipe)
{
    if (mkfifo(pipe->path, pipe->mode) == 0)
        set_mode(pipe);
    else if (errno != EEXIST)
        return trouble_of(NOT_MADE, errno);
    return trouble_of(NOTHING, 0);
}

/* Looks at what is there before it is opened: opening a device may do something to it. */
static struct trouble look_at_path(const struct pipe *pipe)
{
    struct stat status;
    if (lstat(pipe->path, &status) != 0) {
        if (errno != ENOENT)
            return trouble_of(NOT_OPENED, errno);
        return pipe->create ? make_pipe(pipe) : trouble_of(ABSENT, 0);
    }
    if (!S_ISFIFO(status.st_mode))
        return (struct trouble){.what = WRONG, .type = status.st_mode};
    return trouble_of(NOTHING, 0);
}

static struct trouble explain_open(int problem)
{
    switch (problem) {
    case ENXIO: return trouble_of(UNREAD, 0);
    case ENOENT: return trouble_of(ABSENT, 0);
    case ELOOP: return (struct trouble){.what = WRONG, .type = S_IFLNK};
    default: return trouble_of(NOT_OPENED, problem);
    }
}

static void set_size(struct pipe *pipe)
{
    if (!pipe->size || fcntl(pipe->fd, F_SETPIPE_SZ, pipe->size) >= 0 || pipe->said_size)
        return;
    pipe->said_size = true;
    pipe->host->log(pipe->host, WEIR_LOG_WARNING, "pipe_size: %s does not get %d bytes: %s; it keeps its size",
                    pipe->path, pipe->size, system_words(errno));
}

static struct trouble open_pipe(struct pipe *pipe)
{
    struct stat status;
    struct trouble trouble = look_at_path(pipe);
    if (trouble.what)
        return trouble;
    int fd = system_open(pipe->path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY, 0);
    if (fd < 0)
        return explain_open(errno);
    /* it may have been replaced since it was looked at */
    if (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) {
        close(fd);
        return (struct trouble){.what = WRONG, .type = status.st_mode};
    }
    pipe->fd = fd;
    pipe->device = status.st_dev;
    pipe->inode = status.st_ino;
    pipe->looked_ms = output_now_ms();
    set_size(pipe);
    return trouble_of(NOTHING, 0);
}

/* One look: is there a pipe with a reader? Gives up one that is no longer in its place. */
static struct trouble pipe_reach(struct pipe *pipe)
{
    if (pipe->fd >= 0 && !(pipe_is_ours(pipe) && pipe_is_in_place(pipe)))
        pipe_let_go(pipe);
    if (pipe->fd < 0)
        return open_pipe(pipe);
    return trouble_of(pipe_has_reader(pipe) ? NOTHING : UNREAD, 0);
}

#endif
