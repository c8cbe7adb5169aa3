#include "connection.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../output.h"

enum {
    BACKLOG_MS = 10, /* interval of attempts while the queue of a listening Unix socket is full */
};

void wr_connection_init(struct connection *connection, const weir_host *host)
{
    *connection = (struct connection){.host = host, .fd = -1};
}

/* ---- The descriptor -------------------------------------------------------------------------- */

bool wr_connection_is_open(const struct connection *connection)
{
    return wr_fd_is_file(connection->fd, connection->device, connection->inode);
}

void wr_connection_close(struct connection *connection)
{
    if (wr_connection_is_open(connection))
        close(connection->fd);
    connection->fd = -1;
}

void wr_connection_abandon(const struct connection *connection)
{
    if (connection->fd >= 0)
        close(connection->fd);
}

/* Makes a socket; a fork may happen as soon as the handler waits for it, so it is recorded before. */
static bool make_socket(struct connection *connection, int family, int type)
{
    struct stat status;
    int fd = system_above_stdio(socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd < 0 || fstat(fd, &status) != 0) {
        connection->error = errno;
        if (fd >= 0)
            close(fd);
        return false;
    }
    connection->fd = fd;
    connection->device = status.st_dev;
    connection->inode = status.st_ino;
    return true;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

int wr_connection_take_error(const struct connection *connection)
{
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

static enum connection_state lose(struct connection *connection, int error)
{
    connection->error = error;
    return CONNECTION_LOST;
}

enum connection_state wr_connection_wait(struct connection *connection, int64_t until_ms)
{
    const bool is_stream = !wr_destination_has_datagrams(&connection->to);
    const weir_waiting *waiting = connection->host->service(connection->host, WEIR_SERVICE_WAITING);
    for (;;) {
        struct pollfd entry = {.fd = connection->fd, .events = POLLOUT};
        int64_t left_ms = until_ms - output_now_ms();
        if (is_stream)
            entry.events |= POLLIN | POLLRDHUP;
        unsigned woke = waiting->wait(connection->host, &entry, 1, left_ms > 0 ? left_ms : 0);
        bool is_ready = woke & WEIR_WAIT_READY;
        if (is_ready && !wr_connection_is_open(connection))
            return lose(connection, EBADF);
        if (is_ready && is_stream && entry.revents & ~POLLOUT &&
            wr_connection_check(connection) == CONNECTION_LOST)
            return CONNECTION_LOST;
        if (is_ready && entry.revents & ~POLLIN)
            return CONNECTION_READY;
        if (woke & WEIR_WAIT_STOP)
            return CONNECTION_STOPPED;
        if (left_ms <= 0 || !is_ready)
            return CONNECTION_BUSY;
    }
}

/* ---- Connecting ------------------------------------------------------------------------------ */

/* Waits for the result of a connect that goes on. Returns 0 or errno. */
static int await_connection(struct connection *connection, int64_t until_ms)
{
    const weir_waiting *waiting = connection->host->service(connection->host, WEIR_SERVICE_WAITING);
    struct pollfd entry = {.fd = connection->fd, .events = POLLOUT};
    int64_t left_ms = until_ms - output_now_ms();
    unsigned woke = waiting->wait(connection->host, &entry, 1, left_ms > 0 ? left_ms : 0);
    if (woke & WEIR_WAIT_READY)
        return wr_connection_take_error(connection);
    return woke & WEIR_WAIT_STOP ? ECANCELED : ETIMEDOUT;
}

/* EAGAIN: the queue of a listening Unix socket is full. */
static int connect_socket(struct connection *connection, const struct sockaddr *address, socklen_t length,
                          int64_t until_ms)
{
    while (connect(connection->fd, address, length) != 0) {
        if (errno == EINPROGRESS)
            return await_connection(connection, until_ms);
        if (errno != EAGAIN && errno != EINTR)
            return errno;
        if (output_now_ms() >= until_ms || !connection->host->wait(connection->host, BACKLOG_MS))
            return ETIMEDOUT;
    }
    return 0;
}

/* Lines are sent as soon as they are there, and a peer that has vanished is noticed. */
static void set_tcp_options(const struct connection *connection)
{
    const int on = 1;
    const unsigned timeout_ms = (unsigned)connection->send_timeout_ms;
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(connection->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(connection->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
}

static bool try_address(struct connection *connection, int family, const struct sockaddr *address,
                        socklen_t length, int64_t until_ms)
{
    int type = wr_destination_has_datagrams(&connection->to) ? SOCK_DGRAM : SOCK_STREAM;
    if (!make_socket(connection, family, type))
        return false;
    connection->error = connect_socket(connection, address, length, until_ms);
    if (!connection->error)
        connection->opened_ms = output_now_ms();
    if (!connection->error && connection->to.kind == DESTINATION_TCP)
        set_tcp_options(connection);
    if (connection->error)
        wr_connection_close(connection);
    return !connection->error;
}

static bool connect_to_path(struct connection *connection, int64_t until_ms)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, connection->to.path, sizeof address.sun_path - 1);
    return try_address(connection, AF_UNIX, (struct sockaddr *)&address, sizeof address, until_ms);
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* Not gai_strerror: it takes a lock of the C library for translations. */
static const char *describe_resolver_error(int code)
{
    switch (code) {
    case EAI_NONAME: return "no such host";
    case EAI_AGAIN: return "the name service is not available";
    case EAI_MEMORY: return "out of memory";
    case EAI_SYSTEM: return system_strerror(errno);
    default: return "the name service has failed";
    }
}

/* An address needs no name service, and does not wait. */
static int resolve(struct connection *connection, struct addrinfo **list)
{
    const struct destination *to = &connection->to;
    struct addrinfo hints = {
        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
        .ai_socktype = wr_destination_has_datagrams(to) ? SOCK_DGRAM : SOCK_STREAM,
    };
    int code = getaddrinfo(to->host, to->port, &hints, list);
    connection->is_name = code == EAI_NONAME;
    if (!connection->is_name)
        return code;
    hints.ai_flags = AI_NUMERICSERV;
    return getaddrinfo(to->host, to->port, &hints, list);
}

/* Tries each address once; `first` is the index of the first one. Each gets its part of the time. */
static bool connect_to_any(struct connection *connection, const struct addrinfo *list, int64_t until_ms)
{
    unsigned count = 0;
    for (const struct addrinfo *at = list; at; at = at->ai_next)
        count++;
    for (unsigned i = 0; i < count; i++) {
        const struct addrinfo *at = list;
        for (unsigned skip = (connection->first + i) % count; skip; skip--)
            at = at->ai_next;
        int64_t now_ms = output_now_ms(), part_ms = (until_ms - now_ms) / (count - i);
        if (try_address(connection, at->ai_family, at->ai_addr, at->ai_addrlen, now_ms + part_ms))
            return true;
        if (connection->error == ECANCELED)
            return false;
    }
    return false;
}

static void describe_failure(const struct connection *connection, int64_t timeout_ms, char *reason, size_t room)
{
    const char *peer = connection->to.peer;
    if (connection->error == ECANCELED)
        snprintf(reason, room, "connect %s: stopped", peer);
    else if (connection->error == ETIMEDOUT)
        snprintf(reason, room, "connect %s: no connection within %lld ms", peer, (long long)timeout_ms);
    else
        snprintf(reason, room, "connect %s: %s", peer, system_strerror(connection->error));
}

bool wr_connection_open(struct connection *connection, int64_t timeout_ms, char *reason, size_t room)
{
    const int64_t until_ms = output_now_ms() + timeout_ms;
    struct addrinfo *list = NULL;
    bool connected;
    if (connection->to.path) {
        connected = connect_to_path(connection, until_ms);
    } else {
        int code = resolve(connection, &list);
        if (code) {
            snprintf(reason, room, "resolve %s: %s", connection->to.peer, describe_resolver_error(code));
            return false;
        }
        connected = connect_to_any(connection, list, until_ms);
        freeaddrinfo(list);
    }
    if (!connected)
        describe_failure(connection, timeout_ms, reason, room);
    return connected;
}

void wr_connection_refresh(struct connection *connection)
{
    struct connection next = *connection;
    char reason[256];
    connection->opened_ms = output_now_ms();
    next.fd = -1;
    if (!wr_connection_open(&next, connection->connect_timeout_ms, reason, sizeof reason)) {
        connection->host->log(connection->host, WEIR_LOG_INFO, "%s; the former address is used", reason);
        return;
    }
    wr_connection_close(connection);
    *connection = next;
}

/* ---- Sending --------------------------------------------------------------------------------- */

enum connection_state wr_connection_check(struct connection *connection)
{
    enum { PIECE = 4096, PIECES = 256 };
    char discarded[PIECE];
    struct pollfd entry = {.fd = connection->fd, .events = POLLRDHUP};
    for (int i = 0; i < PIECES; i++) {
        ssize_t count = recv(connection->fd, discarded, sizeof discarded, MSG_DONTWAIT);
        if (count == 0)
            return lose(connection, EPIPE);
        if (count < 0 && errno == EAGAIN)
            break;
        if (count < 0 && errno != EINTR)
            return lose(connection, errno);
    }
    if (poll(&entry, 1, 0) > 0 && entry.revents & (POLLRDHUP | POLLHUP | POLLERR))
        return lose(connection, EPIPE);
    return CONNECTION_READY;
}

enum connection_state wr_connection_send(struct connection *connection, const char *data, size_t length,
                                         size_t *count)
{
    ssize_t sent;
    do
        sent = send(connection->fd, data, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    *count = sent > 0 ? (size_t)sent : 0;
    if (sent >= 0)
        return CONNECTION_READY;
    if (errno != EAGAIN && errno != ENOBUFS)
        return lose(connection, errno);
    connection->error = errno;
    return CONNECTION_BUSY;
}

void wr_connection_describe(const struct connection *connection, enum connection_state state, char *reason,
                            size_t room)
{
    const char *peer = connection->to.peer;
    if (state == CONNECTION_STOPPED)
        snprintf(reason, room, "send %s: stopped while waiting", peer);
    else if (state == CONNECTION_BUSY)
        snprintf(reason, room, "send %s: no data taken for %lld ms", peer,
                 (long long)connection->send_timeout_ms);
    else if (connection->error == EPIPE)
        snprintf(reason, room, "send %s: closed by the peer", peer);
    else
        snprintf(reason, room, "send %s: %s", peer, system_strerror(connection->error));
}

size_t wr_connection_count_unacknowledged(const struct connection *connection)
{
    int bytes = 0;
    return ioctl(connection->fd, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? (size_t)bytes : 0;
}
