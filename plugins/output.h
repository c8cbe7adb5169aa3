/* output: what handlers share that write to descriptors. */
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

/* The value of an option "mode": permissions in octal. false: refused. */
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

/* Waits until a descriptor that others have made non-blocking takes something, or a stop is asked; 0, or errno.
 */
static inline int output_wait(const weir_host *host, int fd)
{
    enum { LOOK_MS = 100 };
    struct pollfd wanted = {.fd = fd, .events = POLLOUT};
    while (poll(&wanted, 1, LOOK_MS) == 0)
        if (host->stopping(host))
            return EAGAIN;
    return 0;
}

/* Writes all of it, unless something is in the way. Answers 0, or errno; *written: how much of it is out. */
static inline int output_write(const weir_host *host, int fd, const char *data, size_t length, size_t *written)
{
    *written = 0;
    while (*written < length) {
        ssize_t wrote = write(fd, data + *written, length - *written);
        if (wrote > 0) {
            *written += (size_t)wrote;
            continue;
        }
        int problem = wrote == 0 ? ENOSPC : errno;
        if (problem == EAGAIN)
            problem = output_wait(host, fd);
        if (problem && problem != EINTR)
            return problem;
    }
    return 0;
}

/* What keeps a file that does not exist from being created in its folder, or, create_folders, in those that
 * would be created as well: 0: nothing, or errno. */
static inline int output_find_obstacle(const char *path, bool create_folders)
{
    char folder[PATH_MAX];
    if (snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder)
        return ENAMETOOLONG;
    do {
        char *slash = strrchr(folder, '/');
        slash[slash == folder] = '\0'; /* the root keeps its name */
        if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0)
            return 0;
    } while (create_folders && errno == ENOENT && folder[1]);
    return errno;
}

#endif
