#include "connection.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../output.h"

void wr_connection_init(struct connection *connection, const weir_host *host)
{
    *connection = (struct connection){
        .host = host,
        .connecting = host->service(host, WEIR_SERVICE_CONNECTING),
        .own.fd = -1,
    };
}

bool wr_connection_set(struct connection *connection, const char *to, uint32_t kinds)
{
    const weir_host *host = connection->host;
    if (!connection->connecting) {
        host->refuse(host, "", "it needs a newer version of weir: the service " WEIR_SERVICE_CONNECTING);
        return false;
    }
    connection->to = to;
    connection->kind = connection->connecting->check(host, "to", to, kinds);
    if (!connection->kind)
        return false;
    bool is_path = connection->kind & (WEIR_CONNECT_UNIX | WEIR_CONNECT_UNIX_DGRAM);
    connection->peer = strchr(to, ':') + (is_path ? sizeof ":" : sizeof "://") - 1;
    return true;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

int wr_connection_take_error(const struct connection *connection)
{
    int error = 0;
    socklen_t size = sizeof error;
    return getsockopt(connection->own.fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

static enum connection_state lose(struct connection *connection, int error)
{
    connection->error = error;
    return CONNECTION_LOST;
}

enum connection_state wr_connection_wait(struct connection *connection, int64_t until_ms)
{
    const bool is_stream = !wr_connection_has_datagrams(connection);
    const weir_waiting *waiting = connection->host->service(connection->host, WEIR_SERVICE_WAITING);
    for (;;) {
        struct pollfd entry = {.fd = connection->own.fd, .events = POLLOUT};
        int64_t left_ms = until_ms - wr_output_now_ms();
        if (is_stream)
            entry.events |= POLLIN | POLLRDHUP;
        unsigned woke = waiting->wait(connection->host, &entry, 1, left_ms > 0 ? left_ms : 0);
        bool is_ready = woke & WEIR_WAIT_READY;
        if (is_ready && !wr_own_fd_is_open(&connection->own))
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

bool wr_connection_open(struct connection *connection, int64_t timeout_ms, weir_outcome *outcome)
{
    const unsigned send_timeout_ms = (unsigned)connection->send_timeout_ms;
    const weir_connect what = {
        .size = sizeof what,
        .to = connection->to,
        .timeout_ms = timeout_ms,
        .first = connection->first,
    };
    int fd = connection->connecting->connect(connection->host, &what, outcome->reason, sizeof outcome->reason);
    if (fd < 0) {
        outcome->code = WEIR_OUTCOME_RETRY;
        return false;
    }
    if (!wr_own_fd_set(&connection->own, fd))
        return wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "connect %s: %s", connection->peer,
                              wr_system_strerror(errno));
    connection->opened_ms = wr_output_now_ms();
    if (connection->kind & WEIR_CONNECT_TCP)
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &send_timeout_ms, sizeof send_timeout_ms);
    return true;
}

void wr_connection_refresh(struct connection *connection)
{
    struct connection next = *connection;
    weir_outcome outcome;
    connection->opened_ms = wr_output_now_ms();
    next.own.fd = -1;
    if (!wr_connection_open(&next, connection->connect_timeout_ms, &outcome)) {
        connection->host->log(connection->host, WEIR_LOG_INFO, "%s; the former address is used",
                              outcome.reason);
        return;
    }
    wr_own_fd_close(&connection->own);
    *connection = next;
}

/* ---- Sending --------------------------------------------------------------------------------- */

enum connection_state wr_connection_check(struct connection *connection)
{
    enum { PIECE = 4096, PIECES = 256 };
    char discarded[PIECE];
    struct pollfd entry = {.fd = connection->own.fd, .events = POLLRDHUP};
    for (int i = 0; i < PIECES; i++) {
        ssize_t count = recv(connection->own.fd, discarded, sizeof discarded, MSG_DONTWAIT);
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
        sent = send(connection->own.fd, data, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    *count = sent > 0 ? (size_t)sent : 0;
    if (sent >= 0)
        return CONNECTION_READY;
    if (errno != EAGAIN && errno != ENOBUFS)
        return lose(connection, errno);
    connection->error = errno;
    return CONNECTION_BUSY;
}

void wr_connection_fail(const struct connection *connection, enum connection_state state, int code,
                        weir_outcome *outcome)
{
    const char *peer = connection->peer;
    if (state == CONNECTION_STOPPED)
        wr_system_fail(outcome, code, "send %s: stopped while waiting", peer);
    else if (state == CONNECTION_BUSY)
        wr_system_fail(outcome, code, "send %s: no data taken for %lld ms", peer,
                       (long long)connection->send_timeout_ms);
    else
        wr_system_fail(outcome, code, "send %s: %s", peer,
                       connection->error == EPIPE ? "closed by the peer"
                                                  : wr_system_strerror(connection->error));
}

size_t wr_connection_count_unacknowledged(const struct connection *connection)
{
    int bytes = 0;
    return ioctl(connection->own.fd, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? (size_t)bytes : 0;
}
