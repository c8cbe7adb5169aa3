/* output: functions shared by handlers that write to file descriptors. */
#ifndef WEIR_PLUGINS_OUTPUT_H
#define WEIR_PLUGINS_OUTPUT_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <weir/handler.h>

#include "system.h"

static inline int64_t wr_output_now_ms(void)
{
    return wr_system_clock_ns(CLOCK_MONOTONIC) / 1000000;
}

/* Rounded up. */
static inline int64_t wr_output_to_ms(int64_t ns)
{
    return (ns + 999999) / 1000000;
}

static inline int64_t wr_output_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Parses the option "mode": permissions in octal. Returns false after host->refuse if it is invalid. */
static inline bool wr_output_set_mode(const weir_host *host, const char *text, mode_t *mode)
{
    char *end;
    unsigned long value = strtoul(text, &end, 8);
    *mode = (mode_t)value;
    if (*text >= '0' && *text <= '7' && *end == '\0' && value <= 07777)
        return true;
    host->refuse(host, "mode", "\"%s\" is not a mode; allowed: octal digits, like 0640", text);
    return false;
}

/* Whether the handler may wait: until a stop is requested, and then as long as the core waits for it. */
static inline bool wr_output_may_wait(const weir_host *host)
{
    const weir_blocking_call *waiting = host->service(host, WEIR_SERVICE_BLOCKING_CALL);
    return !host->stopping(host) || (waiting && waiting->remaining_ms(host) > 0);
}

/* When to stop waiting for a reader that takes nothing: at limit_ms or, if a part of the batch has been
 * written, soon after the emit was called: that part is reported then, because it is the progress that calls
 * wait for. */
static inline int64_t wr_output_wait_end_ms(int64_t limit_ms, bool partial, int64_t emit_ms)
{
    enum { PARTIAL_WAIT_MS = 100 };
    return partial ? emit_ms + PARTIAL_WAIT_MS : limit_ms;
}

/* Waits until a descriptor that is in non-blocking mode is writable. Returns 0, or EAGAIN if the handler is
 * requested to stop and no time is left. */
static inline int wr_output_wait(const weir_host *host, int fd)
{
    enum { POLL_MS = 100 };
    struct pollfd entry = {.fd = fd, .events = POLLOUT};
    while (poll(&entry, 1, POLL_MS) == 0)
        if (!wr_output_may_wait(host))
            return EAGAIN;
    return 0;
}

/* Writes all of the data unless an error occurs. Returns 0 or errno; *written is the number of bytes
 * written. */
static inline int wr_output_write(const weir_host *host, int fd, const char *data, size_t length,
                                  size_t *written)
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
            error = wr_output_wait(host, fd);
        if (error && error != EINTR)
            return error;
    }
    return 0;
}

/* Checks whether a file that does not exist could be created: its folder must exist and be writable or, with
 * create_folders, the closest folder that exists. Returns 0 or errno. */
static inline int wr_output_check_create(const char *path, bool create_folders)
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

/* Writes to a pipe unless that would wait, whatever the mode of its description, which others may share:
 * setting O_NONBLOCK there would change it for them. Returns the number of bytes, at most PIPE_BUF of which are
 * written as one piece or not at all; -1 with errno set, also where the kernel cannot do it (before 6.5). */
static inline ssize_t wr_output_write_pipe_now(int fd, const char *data, size_t length)
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

#endif
