#include "pipes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_alike(int fd, struct stat *status)
{
    return fstat(fd, status) == 0 && S_ISFIFO(status->st_mode) && fcntl(fd, F_GETFD) == 0 &&
           fcntl(fd, F_GETFL) & O_NONBLOCK && fcntl(fd, F_GETPIPE_SZ) == sysconf(_SC_PAGESIZE);
}

static void add(struct pipes *pipes, int fd, ino_t inode)
{
    if (pipes->count < PIPES_MAX)
        pipes->ends[pipes->count++] = (struct pipes_end){fd, inode};
}

void wr_pipes_list(struct pipes *pipes)
{
    struct stat status;
    DIR *folder = opendir("/proc/self/fd");
    pipes->count = 0;
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        int fd = *entry->d_name == '.' ? -1 : atoi(entry->d_name);
        if (fd >= 0 && is_alike(fd, &status))
            add(pipes, fd, status.st_ino);
    }
    if (folder)
        closedir(folder);
}

static bool contains(const struct pipes *pipes, const struct pipes_end *end)
{
    for (size_t i = 0; i < pipes->count; i++)
        if (pipes->ends[i].fd == end->fd && pipes->ends[i].inode == end->inode)
            return true;
    return false;
}

void wr_pipes_take(struct pipes *pipes, const struct pipes *before)
{
    struct pipes all;
    wr_pipes_list(&all);
    pipes->count = 0;
    for (size_t i = 0; i < all.count; i++) {
        if (contains(before, &all.ends[i]))
            continue;
        fcntl(all.ends[i].fd, F_SETFD, FD_CLOEXEC);
        add(pipes, all.ends[i].fd, all.ends[i].inode);
    }
}

void wr_pipes_close_on_exec(void)
{
    struct pipes found;
    static const struct pipes none;
    wr_pipes_take(&found, &none);
}

void wr_pipes_forget_closed(struct pipes *pipes)
{
    struct stat status;
    size_t kept = 0;
    for (size_t i = 0; i < pipes->count; i++)
        if (fstat(pipes->ends[i].fd, &status) == 0 && S_ISFIFO(status.st_mode) &&
            status.st_ino == pipes->ends[i].inode)
            pipes->ends[kept++] = pipes->ends[i];
    pipes->count = kept;
}

void wr_pipes_abandon(const struct pipes *pipes)
{
    for (size_t i = 0; i < pipes->count; i++)
        close(pipes->ends[i].fd);
}
