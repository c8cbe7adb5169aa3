/* listener: a socket that the source listens at. */
#ifndef STATSD_LISTENER_H
#define STATSD_LISTENER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <weir/source.h>

#include "../../lib/text/destination.h"
#include "../system.h"
#include "socket_group.h"
#include "unix_path.h"

/* What is behind a descriptor of the epoll set: each struct that is registered begins with it. */
enum ready_kind { READY_DATAGRAMS, READY_CONNECTIONS, READY_BYTES };

struct listener {
    enum ready_kind kind; /* first: it leads here */
    struct wr_destination at;
    const char *text;       /* of the option */
    char name[160];         /* for messages: with the port that the system has chosen, once it is open */
    struct wr_own_fd own;   /* its socket */
    uint32_t events;        /* of the epoll set, for which it is registered */
    int type;               /* SOCK_STREAM or SOCK_DGRAM */
    weir_text *parsed;      /* of datagrams */
    struct unix_path place; /* of a Unix socket */
    uint32_t seen_drops;    /* of the kernel, since it was opened */
    uint64_t kernel_drops;  /* since it was created */
};

struct listener_options {
    mode_t mode;     /* of a Unix socket */
    gid_t group;     /* the same; SOCKET_GROUP_NONE: the process's */
    int recv_buffer; /* of datagrams */
};

/* What an item of the option `listen` may be. */
struct listener_rules {
    const char *allowed; /* the forms, for messages */
    unsigned kinds;      /* WEIR_CONNECT_TCP and so on */
    bool is_guarded;     /* addresses other than loopback are allowed */
    const char *advice;  /* how to allow them, for the message */
};

/* Parses an item of the option `listen`. text: valid as long as the listener. Returns false after
 * host->refuse. */
bool wr_listener_init(struct listener *listener, const weir_host *host, const char *text,
                      const struct listener_rules *given);

/* Opens it. Returns false with the outcome set. */
bool wr_listener_open(struct listener *listener, const struct listener_options *options, weir_outcome *outcome);

/* Removes the path of a Unix socket, if it is still its own. */
void wr_listener_close(struct listener *listener);

/* Puts it into an epoll set, which then leads to the listener. Returns false with errno set. */
bool wr_listener_register(struct listener *listener, int epoll_fd);

/* Whether the epoll set reports connections. */
void wr_listener_report(struct listener *listener, int epoll_fd, bool reports);

/* Whether the program has closed descriptors of listeners, all of which are registered, or the epoll set. Then
 * the outcome is set, and the epoll set must be neither used nor closed. */
bool wr_listener_find_loss(const struct listener *listeners, size_t count, int epoll_fd, weir_outcome *outcome);

/* Of all connections of a source. */
struct accepting {
    bool
        is_short; /* the system has no descriptor or no memory for another one: none are accepted for a while */
    bool logged_full, logged_short;
};

union listener_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un path;
};

/* Accepts a connection. Returns its descriptor; -1: there is none. *again: whether another one may wait. */
int wr_listener_accept(const struct listener *listener, const weir_host *host, struct accepting *accepting,
                       union listener_address *from, bool *again);

/* A connection cannot be served, by errno; or as many are open as may be. It is logged once. */
void wr_listener_note_short(const struct listener *listener, const weir_host *host,
                            struct accepting *accepting);
void wr_listener_note_full(const struct listener *listener, const weir_host *host, struct accepting *accepting,
                           size_t count);

/* Writes an address of TCP: tcp://HOST:PORT. */
void wr_listener_format(const union listener_address *address, char *out, size_t room);

/* Whether each path of a Unix socket still leads to it. Returns false with the outcome set. */
bool wr_listener_check_places(const struct listener *listeners, size_t count, weir_outcome *outcome);

/* Closes a connection of the epoll set. It is removed first: while a child has a copy of the socket, such as
 * one between fork and exec, closing it alone leaves it in the set, which would report what is no longer there.
 */
void wr_listener_close_connection(int epoll_fd, struct wr_own_fd *connection);

/* Counts what the kernel has dropped since the last call, because the receive buffer was full. Logs the first
 * time. */
void wr_listener_count_drops(struct listener *listener, const weir_host *host);

#endif
