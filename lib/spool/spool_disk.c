#include "spool/spool_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fd.h"

enum { FLAGS = O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, MODE = 0600 };

static int write_all(int fd, const char *data, size_t length)
{
    while (length) {
        ssize_t written = write(fd, data, length);
        if (written < 0 && errno != EINTR)
            return errno;
        if (written > 0) {
            data += written;
            length -= (size_t)written;
        }
    }
    return 0;
}

static int write_at(int fd, uint64_t offset, const void *data, size_t length)
{
    if (lseek(fd, (off_t)offset, SEEK_SET) < 0)
        return errno;
    return write_all(fd, data, length);
}

int wr_spool_disk_write(const char *path, uint64_t offset, const void *data, size_t length)
{
    int fd = wr_fd_open(path, O_WRONLY | FLAGS | (offset ? 0 : O_CREAT | O_EXCL), MODE);
    if (fd < 0)
        return errno;
    int problem = write_at(fd, offset, data, length);
    if (close(fd) != 0 && !problem && errno != EINTR)
        problem = errno;
    if (problem && !offset)
        unlink(path);
    else if (problem && truncate(path, (off_t)offset) != 0)
        return problem; /* the reader recognises the block that is cut off */
    return problem;
}

int wr_spool_disk_overwrite(const char *path, uint64_t offset, const void *data, size_t length)
{
    int fd = wr_fd_open(path, O_WRONLY | FLAGS, 0);
    if (fd < 0)
        return errno;
    ssize_t written = pwrite(fd, data, length, (off_t)offset);
    int problem = written < 0 ? errno : written < (ssize_t)length ? ENOSPC : 0;
    close(fd);
    return problem;
}

static int read_all(int fd, struct wr_buffer *out)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return errno;
    if (!S_ISREG(status.st_mode))
        return EINVAL;
    if (!wr_buffer_reserve(out, (size_t)status.st_size + 1))
        return ENOMEM;
    for (size_t left = (size_t)status.st_size; left;) {
        ssize_t count = read(fd, out->data + out->length, left);
        if (count < 0 && errno != EINTR)
            return errno;
        if (count == 0)
            break; /* another process has truncated it */
        if (count > 0) {
            out->length += (size_t)count;
            left -= (size_t)count;
        }
    }
    return 0;
}

int wr_spool_disk_read(const char *path, struct wr_buffer *out)
{
    int fd = wr_fd_open(path, O_RDONLY | O_NONBLOCK | FLAGS, 0);
    if (fd < 0)
        return errno;
    int problem = read_all(fd, out);
    close(fd);
    return problem;
}

bool wr_spool_disk_is_full(int problem)
{
    return problem == ENOSPC || problem == EDQUOT || problem == EFBIG;
}
