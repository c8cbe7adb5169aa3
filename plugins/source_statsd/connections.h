/* connections: accepts connections, and parses what each sends as a text of its own. */
#ifndef STATSD_CONNECTIONS_H
#define STATSD_CONNECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "feed.h"
#include "../listening/listener.h"

struct connection {
    enum ready_kind kind; /* first: it leads here */
    struct wr_own_fd own; /* its socket */
    weir_text *text;
    int64_t active_ms;                 /* when the last end of a line came, or the connection */
    struct connection *before, *after; /* in the order of that; `after` also links those that are free */
};

struct connections {
    struct feed *feed;
    int epoll_fd;           /* borrowed */
    struct connection *all; /* `most` */
    size_t most, count;
    struct connection *first, *last; /* by their activity */
    struct connection *free;
    struct connection *ending; /* its text is held while it is finished; then it is closed */
    int64_t idle_ms;
    struct accepting accepting;
};

/* Returns false if out of memory. */
bool wr_connections_init(struct connections *connections, struct feed *feed, size_t most, int64_t idle_ms);
void wr_connections_fini(struct connections *connections);

/* Closes all. */
void wr_connections_close(struct connections *connections);

/* Of those that are open. */
uint64_t wr_connections_bad_lines(const struct connections *connections);

/* [fork] Calls close(2) for all. */
void wr_connections_abandon(const struct connections *connections);

/* Accepts connections as long as there are, and as many are allowed. */
void wr_connections_accept(struct connections *connections, const struct listener *from, int64_t now_ms);

/* Whether there may be another one. */
bool wr_connections_has_room(const struct connections *connections);

/* Reads once from a connection, which may close it. Only while no text is held. */
void wr_connections_read(struct connections *connections, struct connection *connection, int64_t now_ms);

/* After a text is no longer held. */
void wr_connections_go_on(struct connections *connections);

/* Closes those that have sent no end of a line for too long. Returns in how many milliseconds the next one is
 * due; -1: none is. Only while no text is held. */
int64_t wr_connections_close_idle(struct connections *connections, int64_t now_ms);

#endif
