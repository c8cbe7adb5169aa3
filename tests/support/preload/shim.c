/* shim: preloaded into a program under test; makes its write(2) fail in ways that are hard to cause otherwise,
 * and its wall clock jump.
 *
 * WEIR_SHIM=eintr: every other call is interrupted; short: a call writes at most seven bytes; full: now and
 * then a call writes a part, and the next few fail with ENOSPC; fsync: each fdatasync(2) fails. Applies to
 * regular files only.
 *
 * WEIR_SHIM=suspend: as soon as the file WEIR_SHIM_SINCE exists the wall clock is an hour ahead and the
 * monotonic clock is not, as after the machine was suspended.
 *
 * WEIR_SHIM=keep: the kernel does not know MADV_WIPEONFORK, as before Linux 4.14.
 *
 * WEIR_SHIM=gone: a file that ends in ".seg" is deleted before it can be opened, as by another process.
 *
 * WEIR_SHIM=unlisted: a folder's entries cannot be read. */

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef ssize_t write_function(int fd, const void *data, size_t length);

static ssize_t fail(int error)
{
    errno = error;
    return -1;
}

static int is_for_write(const char *mode)
{
    return strcmp(mode, "eintr") == 0 || strcmp(mode, "short") == 0 || strcmp(mode, "full") == 0;
}

__attribute__((visibility("default"))) ssize_t write(int fd, const void *data, size_t length)
{
    static write_function *real;
    static const char *mode;
    static unsigned calls;
    struct stat status;
    if (!real) {
        real = (write_function *)dlsym(RTLD_NEXT, "write");
        mode = getenv("WEIR_SHIM");
    }
    if (!mode || !is_for_write(mode) || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return real(fd, data, length);
    calls++;
    if (strcmp(mode, "eintr") == 0)
        return calls % 2 ? fail(EINTR) : real(fd, data, length);
    if (strcmp(mode, "short") == 0)
        return real(fd, data, length > 7 ? 7 : length);
    if (calls % 5 == 1 && length > 20)
        return real(fd, data, length / 2 + calls % 7);
    return calls % 5 < 3 ? fail(ENOSPC) : real(fd, data, length);
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    static int (*real)(int fd);
    const char *mode = getenv("WEIR_SHIM");
    if (!real)
        real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    return mode && strcmp(mode, "fsync") == 0 ? (int)fail(EIO) : real(fd);
}

__attribute__((visibility("default"))) int madvise(void *address, size_t length, int advice)
{
    const char *mode = getenv("WEIR_SHIM");
    if (advice == MADV_WIPEONFORK && mode && strcmp(mode, "keep") == 0)
        return (int)fail(EINVAL);
    return (int)syscall(SYS_madvise, address, length, advice);
}

/* Makes the system call itself: a sanitizer reads the clock before dlsym works. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *now)
{
    const char *mode = getenv("WEIR_SHIM"), *since = getenv("WEIR_SHIM_SINCE");
    int result = (int)syscall(SYS_clock_gettime, id, now);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) && mode && since &&
        strcmp(mode, "suspend") == 0 && access(since, F_OK) == 0)
        now->tv_sec += 3600;
    return result;
}

/* Makes the system call itself: a sanitizer opens files before dlsym works. */
__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int made = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, int) : 0;
    va_end(arguments);
    const char *mode = getenv("WEIR_SHIM"), *end = strrchr(path, '.');
    if (mode && strcmp(mode, "gone") == 0 && end && strcmp(end, ".seg") == 0)
        unlink(path);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, made);
}

__attribute__((visibility("default"))) struct dirent *readdir(DIR *folder)
{
    static struct dirent *(*real)(DIR * folder);
    const char *mode = getenv("WEIR_SHIM");
    if (!real)
        real = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
    if (!mode || strcmp(mode, "unlisted") != 0)
        return real(folder);
    errno = EIO;
    return NULL;
}
