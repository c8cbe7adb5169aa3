#include "unix_path.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "socket_group.h"

union path_address {
    struct sockaddr any;
    struct sockaddr_un path;
};

/* Returns whether something receives at the path; if not, errno is set: ECONNREFUSED if a process has left it
 * behind. */
static bool has_receiver(int type, const union path_address *address)
{
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    bool connects = connect(fd, &address->any, sizeof address->path) == 0;
    int error = errno;
    close(fd);
    errno = error;
    return connects;
}

/* Removes a socket that nobody receives from. Returns 0 or errno. */
static int remove_stale(int type, const union path_address *address)
{
    const char *path = address->path.sun_path;
    struct stat status;
    if (lstat(path, &status) != 0)
        return errno == ENOENT ? 0 : errno;
    if (!S_ISSOCK(status.st_mode))
        return EEXIST;
    if (has_receiver(type, address))
        return EADDRINUSE;
    if (errno != ECONNREFUSED)
        return errno == EAGAIN || errno == EPROTOTYPE ? EADDRINUSE : errno; /* EPROTOTYPE: another type */
    return unlink(path) == 0 || errno == ENOENT ? 0 : errno;
}

/* The permissions that a socket has before bind are those of its path, less the umask: so it never has more
 * than `mode`. */
int wr_unix_path_bind(struct unix_path *path, int fd, int type, mode_t mode, gid_t group)
{
    union path_address address;
    struct stat status;
    path->inode = 0;
    memset(&address, 0, sizeof address);
    address.path.sun_family = AF_UNIX;
    strncpy(address.path.sun_path, path->path, sizeof address.path.sun_path - 1);
    int error = remove_stale(type, &address);
    if (error)
        return error;
    if (fchmod(fd, mode) != 0 || bind(fd, &address.any, sizeof address.path) != 0 ||
        lstat(path->path, &status) != 0)
        return errno;
    path->device = status.st_dev;
    path->inode = status.st_ino;
    if (group != SOCKET_GROUP_NONE && S_ISSOCK(status.st_mode) && lchown(path->path, (uid_t)-1, group) != 0)
        return errno;
    if ((status.st_mode & 07777) != mode && S_ISSOCK(status.st_mode) && chmod(path->path, mode) != 0)
        return errno;
    return 0;
}

bool wr_unix_path_is_in_place(const struct unix_path *path)
{
    struct stat status;
    return path->inode && lstat(path->path, &status) == 0 && status.st_dev == path->device &&
           status.st_ino == path->inode;
}

void wr_unix_path_remove(struct unix_path *path)
{
    if (wr_unix_path_is_in_place(path))
        unlink(path->path);
    path->inode = 0;
}
