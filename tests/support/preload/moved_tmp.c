/* moved_tmp: preloaded into a program under test; benchmarkai's paths in /tmp lead to the folder WEIR_MOVED_TMP
 * in its place, for the calls that the handler type fifo makes. */

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_ROOM = 4096 };

/* Returns the path, or its counterpart in `moved`. */
static const char *move(const char *path, char moved[PATH_ROOM])
{
    static const char tmp[] = "/tmp", prefix[] = "/tmp/benchmark-ai";
    const char *folder = getenv("WEIR_MOVED_TMP");
    if (!folder || strncmp(path, prefix, sizeof prefix - 1) != 0)
        return path;
    snprintf(moved, PATH_ROOM, "%s%s", folder, path + sizeof tmp - 1);
    return moved;
}

/* Makes the system call itself: a sanitizer opens files before dlsym works. */
__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
    char moved[PATH_ROOM];
    va_list arguments;
    va_start(arguments, flags);
    int mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, int) : 0;
    va_end(arguments);
    return (int)syscall(SYS_openat, AT_FDCWD, move(path, moved), flags, mode);
}

__attribute__((visibility("default"))) int lstat(const char *path, struct stat *status)
{
    char moved[PATH_ROOM];
    return fstatat(AT_FDCWD, move(path, moved), status, AT_SYMLINK_NOFOLLOW);
}

__attribute__((visibility("default"))) int mkfifo(const char *path, mode_t mode)
{
    char moved[PATH_ROOM];
    return mkfifoat(AT_FDCWD, move(path, moved), mode);
}

__attribute__((visibility("default"))) int faccessat(int folder, const char *path, int mode, int flags)
{
    int (*real)(int, const char *, int, int) =
        (int (*)(int, const char *, int, int))dlsym(RTLD_NEXT, "faccessat");
    char moved[PATH_ROOM];
    return real(folder, move(path, moved), mode, flags);
}
