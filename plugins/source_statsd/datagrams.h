/* datagrams: receives datagrams, several with a call, and parses each as a text that ends with it. */
#ifndef STATSD_DATAGRAMS_H
#define STATSD_DATAGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "feed.h"
#include "../listening/listener.h"

enum { DATAGRAMS_AT_ONCE = 32 };

struct datagrams {
    struct feed *feed;
    struct mmsghdr messages[DATAGRAMS_AT_ONCE];
    struct iovec pieces[DATAGRAMS_AT_ONCE];
    char *buffers;
    struct listener *from; /* what is being parsed came from it */
    unsigned count, next;  /* datagrams that were received, and the first that is not parsed yet */
    size_t parsed;         /* bytes of that one */
    bool logged_cut;
};

/* bytes: of the longest datagram. Returns false if out of memory. */
bool wr_datagrams_open(struct datagrams *datagrams, struct feed *feed, size_t bytes);
void wr_datagrams_close(struct datagrams *datagrams);

/* Receives what has come, at most DATAGRAMS_AT_ONCE, and parses it. Only while no text is held. Returns 0, or
 * errno. */
int wr_datagrams_receive(struct datagrams *datagrams, struct listener *from);

/* Parses what was received. Returns false if a text is held. */
bool wr_datagrams_parse(struct datagrams *datagrams);

/* Counts datagrams that were received or came in time, but are not parsed, because the source stops. */
void wr_datagrams_count_left(struct datagrams *datagrams, const struct listener *from);

#endif
