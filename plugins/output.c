#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

int64_t wr_output_now_ms(void)
{
    return wr_system_clock_ns(CLOCK_MONOTONIC) / 1000000;
}

int64_t wr_output_to_ms(int64_t ns)
{
    return (ns + 999999) / 1000000;
}

int64_t wr_output_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

bool wr_output_set_mode(const weir_host *host, const char *text, mode_t *mode)
{
    char *end;
    unsigned long value = strtoul(text, &end, 8);
    *mode = (mode_t)value;
    if (*text >= '0' && *text <= '7' && *end == '\0' && value <= 07777)
        return true;
    host->refuse(host, "mode", "\"%s\" is not a mode; allowed: octal digits, like 0640", text);
    return false;
}

bool wr_output_may_wait(const weir_host *host)
{
    const weir_blocking_call *waiting = host->service(host, WEIR_SERVICE_BLOCKING_CALL);
    return !host->stopping(host) || (waiting && waiting->remaining_ms(host) > 0);
}

int64_t wr_output_wait_end_ms(int64_t limit_ms, bool partial, int64_t emit_ms)
{
    enum { PARTIAL_WAIT_MS = 100 };
    return partial ? emit_ms + PARTIAL_WAIT_MS : limit_ms;
}

/* Waits until a descriptor that is in non-blocking mode is writable. Returns 0, or EAGAIN if the handler is
 * requested to stop and no time is left. */
static int wait_writable(const weir_host *host, int fd)
{
    enum { POLL_MS = 100 };
    struct pollfd entry = {.fd = fd, .events = POLLOUT};
    while (poll(&entry, 1, POLL_MS) == 0)
        if (!wr_output_may_wait(host))
            return EAGAIN;
    return 0;
}

int wr_output_write(const weir_host *host, int fd, const char *data, size_t length, size_t *written)
{
    *written = 0;
    while (*written < length) {
        ssize_t count = write(fd, data + *written, length - *written);
        if (count > 0) {
            *written += (size_t)count;
            continue;
        }
        int error = count == 0 ? ENOSPC : errno;
        if (error == EAGAIN)
            error = wait_writable(host, fd);
        if (error && error != EINTR)
            return error;
    }
    return 0;
}

int wr_output_check_create(const char *path, bool create_folders)
{
    char folder[PATH_MAX];
    if (snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder)
        return ENAMETOOLONG;
    do {
        char *slash = strrchr(folder, '/');
        slash[slash == folder] = '\0'; /* "/" stays "/" */
        if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0)
            return 0;
    } while (create_folders && errno == ENOENT && folder[1]);
    return errno;
}

ssize_t wr_output_write_pipe_now(int fd, const char *data, size_t length)
{
#ifdef RWF_NOWAIT
    const struct iovec piece = {.iov_base = (void *)(uintptr_t)data, .iov_len = length};
    return pwritev2(fd, &piece, 1, -1, RWF_NOWAIT);
#else
    (void)fd, (void)data, (void)length;
    errno = EOPNOTSUPP;
    return -1;
#endif
}
