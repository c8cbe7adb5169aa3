/* connecting: the service connecting/1: resolves names and connects sockets, for handlers and sources. */
#ifndef WR_CONNECTING_H
#define WR_CONNECTING_H

#include <stddef.h>
#include <stdint.h>

#include <weir/host.h>

#include "os/own_fd.h"

/* How an instance waits: as weir_waiting.wait, but it may return 0 early. */
typedef unsigned wr_connecting_wait(const weir_host *host, struct pollfd *fds, size_t count,
                                    int64_t timeout_ms);

/* The socket that an instance has connected last, or is connecting. It is remembered after it was handed over
 * or closed: so no child that is forked before the instance has stored the number inherits it unseen, and the
 * identity shows whether the number still is that socket's.
 *
 * Written by the instance's thread, read in a child that another thread has forked. The identity is stored
 * first, and then the number, by an atomic store (release) that pairs with the load in wr_connecting_abandon;
 * both before the wait begins. The memory of a child is what another thread could have read at the fork: if it
 * has the number, it has the identity as well, or that of a later socket, and then nothing is closed that it
 * does not own. In the other order the child could find the number with the identity of the socket before, and
 * leave it open. That it has the number at all: the wait of a handler begins with the lane's lock, and the
 * thread that forks has seen under that lock that the worker waits. A source's thread is not waited for; its
 * stores precede its poll(2), so a fork during that has them. */
struct wr_connecting {
    struct wr_own_fd last;
};

static inline void wr_connecting_init(struct wr_connecting *connecting)
{
    connecting->last.fd = -1;
}

/* As weir_connecting.check. */
uint32_t wr_connecting_check(const weir_host *host, const char *option, const char *to, uint32_t kinds);

/* As weir_connecting.connect. wait: NULL in a callback that must not wait, which then gets -1. */
int wr_connecting_connect(struct wr_connecting *connecting, const weir_host *host, wr_connecting_wait *wait,
                          const weir_connect *what, char *reason, size_t room);

/* [fork] In the child, after the instance's own `abandon`, which may have closed it: closes the socket if the
 * number still is its. */
void wr_connecting_abandon(const struct wr_connecting *connecting);

#endif
