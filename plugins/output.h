/* output: writing to a descriptor, for handlers that do. */
#ifndef WEIR_PLUGINS_OUTPUT_H
#define WEIR_PLUGINS_OUTPUT_H

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <unistd.h>

#include <weir/handler.h>

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

#endif
