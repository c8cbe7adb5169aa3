/* listener: the sockets that a source listens at, and its epoll set. */
#ifndef STATSD_LISTENER_H
#define STATSD_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <weir/source.h>

#include "../../lib/text/destination.h"
#include "../system.h"
#include "listening.h"
#include "socket_group.h"
#include "unix_path.h"

/* What is behind a descriptor of the epoll set: each struct that is registered begins with it. */
enum ready_kind { READY_DATAGRAMS, READY_CONNECTIONS, READY_BYTES };

struct listener {
    enum ready_kind kind; /* first: it leads here */
    struct wr_destination at;
    struct listening listening; /* the same */
    const char *text;           /* of the option */
    char name[160];             /* for messages: with the port that the system has chosen, once it is open */
    struct wr_own_fd own;       /* its socket */
    int type;                   /* SOCK_STREAM or SOCK_DGRAM */
    weir_text *parsed;          /* of datagrams */
    struct unix_path place;     /* of a Unix socket */
    uint32_t seen_drops;        /* of the kernel, since it was opened */
    uint64_t kernel_drops;      /* since it was created */
};

struct listener_options {
    mode_t mode;     /* of a Unix socket */
    gid_t group;     /* the same; SOCKET_GROUP_NONE: the process's */
    int recv_buffer; /* of datagrams */
};

/* What an item of the option may be. */
struct listener_rules {
    const char *option;
    const char *allowed; /* the forms, for messages */
    unsigned kinds;      /* WEIR_CONNECT_TCP and so on */
    bool is_guarded;     /* addresses other than loopback are allowed */
    const char *risk;    /* what anybody who reaches it can do, for the message */
    const char *advice;  /* how to allow them, the same */
};

struct listeners {
    const weir_host *host;
    struct listener_options options;
    struct listener *all;
    size_t count;
    struct wr_own_fd epoll; /* where a source registers its connections, too */
    bool has_paths;         /* of Unix sockets */
    bool is_accepting;      /* the epoll set reports connections */
    bool has_lost;          /* descriptors, which the program has closed */
};

/* Parses the items of the option, which stay valid. Returns false after host->refuse. */
bool wr_listeners_init(struct listeners *listeners, const weir_host *host, const weir_list *list,
                       const struct listener_rules *rules);

/* Makes the epoll set; opens all, and registers them in it. Both return false with the outcome set. */
bool wr_listeners_begin(struct listeners *listeners, weir_outcome *outcome);
bool wr_listeners_open(struct listeners *listeners, weir_outcome *outcome);

/* Logs where the source listens. */
void wr_listeners_log(const struct listeners *listeners);

/* Closes all, and the epoll set. Removes the paths of Unix sockets that are still their own. */
void wr_listeners_close(struct listeners *listeners);

/* [fork] Calls close(2) for all, and the epoll set. */
void wr_listeners_abandon(const struct listeners *listeners);

/* Sets whether the epoll set reports connections. It must not while there is no room for another one. */
void wr_listeners_accept(struct listeners *listeners, bool accepts);

/* Whether the program has closed descriptors of listeners, or the epoll set. Then the outcome is set, and the
 * epoll set must not be used. */
bool wr_listeners_find_loss(struct listeners *listeners, weir_outcome *outcome);

/* Of all connections of a source. */
struct accepting {
    /* the system has no descriptor or no memory for another one: none are accepted for a while */
    bool is_short;
    bool logged_full, logged_short;
};

/* Accepts a connection. Returns its descriptor; -1: there is none. *again: whether another one may wait. */
int wr_listener_accept(const struct listener *listener, const weir_host *host, struct accepting *accepting,
                       struct sockaddr_storage *from, bool *again);

/* A connection cannot be served, by errno; or as many are open as may be. It is logged once. */
void wr_listener_note_short(const struct listener *listener, const weir_host *host,
                            struct accepting *accepting);
void wr_listener_note_full(const struct listener *listener, const weir_host *host, struct accepting *accepting,
                           size_t count);

/* Writes an address of TCP: tcp://HOST:PORT. */
void wr_listener_format(const struct sockaddr_storage *address, char *out, size_t room);

/* Whether each path of a Unix socket still leads to it. Returns false with the outcome set. */
bool wr_listeners_check_places(const struct listeners *listeners, weir_outcome *outcome);

/* Closes a connection of the epoll set. It is removed first: while a child has a copy of the socket, such as
 * one between fork and exec, closing it alone leaves it in the set, which would report what is no longer there.
 */
void wr_listener_close_connection(int epoll_fd, struct wr_own_fd *connection);

/* Counts what the kernel has dropped since the last call, because the receive buffer was full. Logs the first
 * time. */
void wr_listener_count_drops(struct listener *listener, const weir_host *host);

#endif
