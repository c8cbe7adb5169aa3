#include "report_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../output.h"

static const char ending[] = ".XXXXXX";

/* The folder and, with a point before it and an ending behind it, the file's name. Returns 0 or an errno. */
static int find_place(const char *path, char real[PATH_MAX], char temporary[PATH_MAX])
{
    if (!realpath(path, real)) {
        if (errno != ENOENT)
            return errno;
        if (snprintf(real, PATH_MAX, "%s", path) >= PATH_MAX)
            return ENAMETOOLONG;
    }
    const char *slash = strrchr(real, '/');
    int folder = slash ? (int)(slash - real) : 0;
    const char *name = slash ? slash + 1 : real;
    int length = snprintf(temporary, PATH_MAX, "%.*s/.%s%s", folder, real, name, ending);
    return length >= PATH_MAX ? ENAMETOOLONG : 0;
}

int report_file_check(const char *path)
{
    char real[PATH_MAX], temporary[PATH_MAX];
    struct stat status;
    int problem = find_place(path, real, temporary);
    if (problem)
        return problem;
    if (stat(real, &status) == 0 && !S_ISREG(status.st_mode))
        return EEXIST;
    return wr_output_check_create(real, false);
}

static int write_whole(int fd, mode_t mode, const char *data, size_t length)
{
    if (fchmod(fd, mode) != 0)
        return errno;
    for (size_t done = 0; done < length;) {
        ssize_t written = write(fd, data + done, length - done);
        if (written < 0 && errno != EINTR)
            return errno;
        if (written == 0)
            return ENOSPC;
        done += written > 0 ? (size_t)written : 0;
    }
    return fsync(fd) != 0 && errno != EINVAL ? errno : 0; /* EINVAL: it cannot be forced to disk there */
}

int report_file_write(const char *path, mode_t mode, const char *data, size_t length)
{
    char real[PATH_MAX], temporary[PATH_MAX];
    int problem = report_file_check(path);
    if (!problem)
        problem = find_place(path, real, temporary);
    if (problem)
        return problem;
    int fd = wr_fd_above_stdio(mkostemp(temporary, O_CLOEXEC));
    if (fd < 0)
        return errno;
    problem = write_whole(fd, mode, data, length);
    if (close(fd) != 0 && !problem)
        problem = errno;
    if (!problem && rename(temporary, real) != 0)
        problem = errno;
    if (problem)
        unlink(temporary);
    return problem;
}
