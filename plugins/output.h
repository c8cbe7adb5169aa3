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
#include <time.h>
#include <unistd.h>

#include <weir/handler.h>

#include "system.h"

static inline int64_t output_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Parses the option "mode": permissions in octal. Returns false after host->refuse if it is invalid. */
static inline bool output_set_mode(const weir_host *host, const char *text, mode_t *mode)
{
    char *end;
    unsigned long value = strtoul(text, &end, 8);
    *mode = (mode_t)value;
    if (*text >= '0' && *text <= '7' && *end == '\0' && value <= 07777)
        return true;
    host->refuse(host, "mode", "\"%s\" is not a mode; allowed: octal digits, like 0640", text);
    return false;
}

/* Waits until a descriptor that is in non-blocking mode is writable. Returns 0, or EAGAIN if the handler is
 * requested to stop. */
static inline int output_wait(const weir_host *host, int fd)
{
    enum { POLL_MS = 100 };
    struct pollfd entry = {.fd = fd, .events = POLLOUT};
    while (poll(&entry, 1, POLL_MS) == 0)
        if (host->stopping(host))
            return EAGAIN;
    return 0;
}

/* Writes all of the data unless an error occurs. Returns 0 or errno; *written is the number of bytes
 * written. */
static inline int output_write(const weir_host *host, int fd, const char *data, size_t length, size_t *written)
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
            error = output_wait(host, fd);
        if (error && error != EINTR)
            return error;
    }
    return 0;
}

/* Checks whether a file that does not exist could be created: its folder must exist and be writable or, with
 * create_folders, the closest folder that exists. Returns 0 or errno. */
static inline int output_check_create(const char *path, bool create_folders)
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

#endif
