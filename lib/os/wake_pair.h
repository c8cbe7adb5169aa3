/* wake_pair: wakes a thread that waits for descriptors of its own at the same time. A pair of sockets, since
 * these can be recognised: an eventfd has the identity of all others. And a thread that waits at one end wakes
 * up when the program closes all descriptors, as the other end goes with them. */
#ifndef WR_WAKE_PAIR_H
#define WR_WAKE_PAIR_H

#include <stdbool.h>

#include "os/lock.h"
#include "os/own_fd.h"

struct wr_wake_pair {
    struct wr_lock lock; /* for both: the waiting thread opens others */
    struct wr_own_fd read, write;
};

/* Not open. */
void wr_wake_pair_init(struct wr_wake_pair *pair);

/* Returns false with errno set. */
bool wr_wake_pair_open(struct wr_wake_pair *pair);
void wr_wake_pair_close(struct wr_wake_pair *pair);

/* [any thread] Does not block. */
void wr_wake_pair_wake(struct wr_wake_pair *pair);

/* [waiting thread] Before it waits for pair->read.fd, which is -1 if no descriptor is left. Returns
 * whether wake-ups may have been lost, since the program had closed them: then the thread must not wait before
 * it has looked at everything. */
bool wr_wake_pair_renew(struct wr_wake_pair *pair);

/* [waiting thread] To be called before what the writers have set is looked at. */
void wr_wake_pair_empty(struct wr_wake_pair *pair);

/* [fork] In the child. */
void wr_wake_pair_abandon(const struct wr_wake_pair *pair);

#endif
