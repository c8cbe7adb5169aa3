#include "file_lock.h"

#include <errno.h>
#include <poll.h>
#include <sys/file.h>

#include "../output.h"

enum { WAIT_MS = 2000, STOP_WAIT_MS = 200, LONGEST_NAP_MS = 20 };

const char *wr_file_error_text(int error)
{
    switch (error) {
    case FILE_ERROR_LOCKED: return "another process has kept its lock (flock) for 2 s";
    case FILE_ERROR_FIFO: return "a named pipe, not a regular file; the handler type for pipes is fifo";
    case FILE_ERROR_DEVICE:
        return "a device, pipe or terminal, not a regular file; the handler type for standard output and "
               "standard error is console, for discarding values null";
    case FILE_ERROR_SOCKET: return "a socket, not a regular file";
    default: return wr_system_strerror(error);
    }
}

/* Returns 0, EWOULDBLOCK if another process has a lock that excludes this one, or another errno. */
static int try_lock(int fd, int operation)
{
    int result;
    do
        result = flock(fd, operation | LOCK_NB);
    while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

bool wr_file_lock_try(int fd, int operation)
{
    return try_lock(fd, operation) != EWOULDBLOCK;
}

static void nap(const weir_host *host, int ms)
{
    const weir_blocking_call *waiting = host->service(host, WEIR_SERVICE_BLOCKING_CALL);
    if (waiting)
        waiting->begin(host);
    poll(NULL, 0, ms);
    if (waiting)
        waiting->end(host);
}

/* Attempts instead of a flock that waits: that could not be ended, neither after a time nor by a stop. */
int wr_file_lock_take(const weir_host *host, int fd, int operation)
{
    int64_t end_ms = 0;
    for (int nap_ms = 1; try_lock(fd, operation) == EWOULDBLOCK; nap_ms *= 2) {
        int64_t now_ms = wr_output_now_ms();
        if (!end_ms)
            end_ms = now_ms + WAIT_MS;
        if (host->stopping(host) && end_ms > now_ms + STOP_WAIT_MS)
            end_ms = now_ms + STOP_WAIT_MS;
        if (now_ms >= end_ms)
            return FILE_ERROR_LOCKED;
        if (nap_ms > LONGEST_NAP_MS)
            nap_ms = LONGEST_NAP_MS;
        nap(host, nap_ms);
    }
    return 0;
}

void wr_file_lock_release(int fd)
{
    flock(fd, LOCK_UN);
}
