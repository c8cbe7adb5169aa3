/* own_fd: a descriptor with the identity of its file. A program that closes all descriptors, as daemons do, may
 * have reused the number for another file, which must not be read, written or closed. Epoll instances and
 * eventfds all have the same identity. */
#ifndef WR_OWN_FD_H
#define WR_OWN_FD_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* Whether fd, -1 allowed, is open on the file with this device and inode. */
static inline bool wr_fd_is_file(int fd, dev_t device, ino_t inode)
{
    struct stat status;
    return fd >= 0 && fstat(fd, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

struct wr_own_fd {
    _Atomic int fd; /* -1: none. In a forked child, one that is being closed may be left open */
    dev_t device;
    ino_t inode;
};

/* Takes fd over; -1, with errno set, allowed. Returns false with errno set, and the descriptor closed. */
static inline bool wr_own_fd_set(struct wr_own_fd *own, int fd)
{
    struct stat status;
    if (fd < 0)
        return false;
    if (fstat(fd, &status) != 0) {
        close(fd);
        return false;
    }
    own->device = status.st_dev;
    own->inode = status.st_ino;
    own->fd = fd;
    return true;
}

/* Whether the number still is that of the file. */
static inline bool wr_own_fd_is_open(const struct wr_own_fd *own)
{
    return wr_fd_is_file(own->fd, own->device, own->inode);
}

/* Forgets it before it is closed: a child that is forked in between has it open, and none is closed twice. */
static inline void wr_own_fd_close(struct wr_own_fd *own)
{
    bool is_open = wr_own_fd_is_open(own);
    int fd = own->fd;
    own->fd = -1;
    if (is_open)
        close(fd);
}

/* [fork] In the child. */
static inline void wr_own_fd_abandon(const struct wr_own_fd *own)
{
    if (wr_own_fd_is_open(own))
        close(own->fd);
}

#endif
