/* http_daemon: an HTTP server: libmicrohttpd without threads of its own, run by the thread of a source or a
 * handler. Connections are accepted here, not by the library: a program may run with standard streams closed,
 * whose numbers are not for us, and a forked child has to close these descriptors. */
#ifndef WEIR_PLUGINS_HTTP_DAEMON_H
#define WEIR_PLUGINS_HTTP_DAEMON_H

#include <microhttpd.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/source.h>

#include "../system.h"
#include "listening.h"
#include "unix_path.h"

/* What a connection waits for, which decides how long it may. */
enum http_phase {
    HTTP_PHASE_HEADERS, /* of the next request: idle_timeout_ns */
    HTTP_PHASE_BODY,    /* request_timeout_ns */
    HTTP_PHASE_REPLY,   /* for the client to take the reply: idle_timeout_ns without any progress */
    HTTP_PHASE_WAITS,   /* for the source: any time */
};

/* How much of a reply the client has taken. */
struct http_progress {
    uint64_t acked; /* bytes; of TCP only */
    int unsent;     /* bytes in the kernel's buffer */
};

/* One for each connection. */
struct http_slot {
    struct wr_own_fd own; /* its socket; -1: free */
    int64_t since_ms;     /* when its phase began, or had progress */
    enum http_phase phase;
    struct http_progress progress; /* in HTTP_PHASE_REPLY, when it was checked last */
};

struct http_daemon {
    const weir_host *host;                       /* counts and logs; NULL: nobody does */
    int64_t idle_timeout_ns, request_timeout_ns; /* set by the owner */
    struct MHD_Daemon *library;
    struct wr_own_fd listening, epoll; /* the latter is the library's */
    /* the program has closed its descriptors: nothing is done any more, until it is stopped */
    _Atomic bool is_lost;
    struct unix_path place; /* of a Unix socket; its path is NULL without one */
    struct http_slot *slots;
    size_t slot_count, open_count;
    bool is_short;     /* accepting has failed: tried again after a while */
    int64_t short_ms;  /* when it failed */
    bool logged_short; /* until all that waited were accepted */
};

/* [configuring] slot_count: the most connections that are open at once; others wait. Returns false if out of
 * memory. */
bool http_daemon_init(struct http_daemon *daemon, const weir_host *host, size_t slot_count);
void http_daemon_fini(struct http_daemon *daemon);

/* [source] mode: the permissions of a Unix socket, else of no effect. Returns false with errno set. Call
 * http_daemon_stop after a failure, too. */
bool http_daemon_listen(struct http_daemon *daemon, const struct listening *listening, mode_t mode);

/* Whether what it listens at still leads to it: the path of a Unix socket may be removed or replaced. */
bool http_daemon_is_in_place(const struct http_daemon *daemon);

/* How requests are handled: as for MHD_start_daemon. */
struct http_use {
    unsigned flags; /* MHD_ALLOW_SUSPEND_RESUME, which takes a descriptor more, or 0 */
    int strictness; /* of MHD_OPTION_STRICT_FOR_CLIENT */
    size_t connection_bytes;
    MHD_AccessHandlerCallback on_request;
    MHD_RequestCompletedCallback on_completed; /* NULL: none */
    void *ctx;
};

/* [source] Returns false with errno set, or 0 in it. */
bool http_daemon_start(struct http_daemon *daemon, const struct http_use *use);
void http_daemon_stop(struct http_daemon *daemon);

/* [any thread] Whether its own descriptors are closed; those of connections are not looked at. */
bool http_daemon_has_lost(const struct http_daemon *daemon);

/* [fork] */
void http_daemon_abandon(const struct http_daemon *daemon);

/* Waits for connections, requests, or a stop, at most so long, and handles what has come, unless is_lost is
 * true then. Returns as weir_intake.wait. */
unsigned http_daemon_wait(struct http_daemon *daemon, const weir_intake *intake, int64_t timeout_ms);

/* Its two parts, for a thread that waits in another way: what to wait for, with the time at most; and what
 * follows. */
int64_t http_daemon_prepare(struct http_daemon *daemon, struct pollfd fds[2], int64_t timeout_ms);
void http_daemon_serve(struct http_daemon *daemon);

/* Handles what has come, and requests that were resumed. */
void http_daemon_run(struct http_daemon *daemon);

/* Ends connections that are too slow. To be called about once a second or more often, or when it has returned
 * that the next one may be: after so many ms; INT64_MAX: none. */
int64_t http_daemon_check(struct http_daemon *daemon);

void http_daemon_set_phase(struct MHD_Connection *connection, enum http_phase phase);

#endif
