#include "os/wake_pair.h"

#include <sys/socket.h>

#include "os/fd.h"

void wr_wake_pair_init(struct wr_wake_pair *pair)
{
    *pair = (struct wr_wake_pair){.read.fd = -1, .write.fd = -1};
}

/* [lock] */
static void close_ends(struct wr_wake_pair *pair)
{
    wr_own_fd_close(&pair->read);
    wr_own_fd_close(&pair->write);
}

/* [lock] */
static bool open_ends(struct wr_wake_pair *pair)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        return false;
    bool can_read = wr_own_fd_set(&pair->read, wr_fd_above_stdio(ends[0]));
    bool can_write = wr_own_fd_set(&pair->write, wr_fd_above_stdio(ends[1]));
    if (can_read && can_write)
        return true;
    close_ends(pair);
    return false;
}

bool wr_wake_pair_open(struct wr_wake_pair *pair)
{
    wr_lock_enter(&pair->lock);
    bool is_open = open_ends(pair);
    wr_lock_leave(&pair->lock);
    return is_open;
}

void wr_wake_pair_close(struct wr_wake_pair *pair)
{
    wr_lock_enter(&pair->lock);
    close_ends(pair);
    wr_lock_leave(&pair->lock);
}

/* One that is full is readable anyway. No signal: the program may have closed the other end. */
void wr_wake_pair_wake(struct wr_wake_pair *pair)
{
    wr_lock_enter(&pair->lock);
    if (wr_own_fd_is_open(&pair->write))
        send(pair->write.fd, "", 1, MSG_NOSIGNAL);
    wr_lock_leave(&pair->lock);
}

bool wr_wake_pair_renew(struct wr_wake_pair *pair)
{
    if (wr_own_fd_is_open(&pair->read) && wr_own_fd_is_open(&pair->write)) /* only this thread changes them */
        return false;
    bool was_open = pair->read.fd >= 0;
    wr_lock_enter(&pair->lock);
    close_ends(pair);
    open_ends(pair);
    wr_lock_leave(&pair->lock);
    return was_open || pair->read.fd >= 0;
}

void wr_wake_pair_empty(struct wr_wake_pair *pair)
{
    char bytes[64];
    while (wr_own_fd_is_open(&pair->read) &&
           recv(pair->read.fd, bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes) {
    }
}

void wr_wake_pair_abandon(const struct wr_wake_pair *pair)
{
    wr_own_fd_abandon(&pair->read);
    wr_own_fd_abandon(&pair->write);
}
