#include "os/file_mark.h"

#include <sys/stat.h>

struct wr_file_mark wr_file_mark_take(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return (struct wr_file_mark){0};
    return (struct wr_file_mark){status.st_dev, status.st_ino, status.st_size, status.st_mtim};
}

bool wr_file_mark_is_same(const struct wr_file_mark *a, const struct wr_file_mark *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}
