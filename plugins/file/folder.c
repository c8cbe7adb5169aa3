#include "folder.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../system.h"

/* Whatever the umask, the owner may enter and use it: with 0177 the files in it could not be made. */
static void make_folder(const char *path)
{
    struct stat status;
    if (mkdir(path, 0777) == 0 && stat(path, &status) == 0 && (status.st_mode & S_IRWXU) != S_IRWXU)
        chmod(path, (status.st_mode & 07777u) | S_IRWXU);
}

void wr_folder_create(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        make_folder(path);
        *slash = '/';
    }
}

void wr_folder_sync(const char *path)
{
    char folder[PATH_MAX];
    const char *end = strrchr(path, '/');
    size_t length = end && end > path ? (size_t)(end - path) : 1;
    if (length >= sizeof folder)
        return;
    memcpy(folder, path, length);
    folder[length] = '\0';
    int fd = wr_fd_open(folder, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}
