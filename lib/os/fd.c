#include "os/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int wr_fd_above_stdio(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int problem = errno;
    close(fd);
    errno = problem;
    return moved;
}

int wr_fd_open(const char *path, int flags, mode_t mode)
{
    return wr_fd_above_stdio(open(path, flags | O_CLOEXEC, mode));
}

int wr_fd_open_at(int folder, const char *name, int flags, mode_t mode)
{
    return wr_fd_above_stdio(openat(folder, name, flags | O_CLOEXEC, mode));
}

bool wr_fd_path_is_file(const char *path, dev_t device, ino_t inode)
{
    struct stat status;
    return lstat(path, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}
