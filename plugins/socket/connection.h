/* connection: a connected socket, for streams and for datagrams. All of it runs on the handler's worker.
 *
 * Callers check with wr_own_fd_is_open that the socket is still this one, before it is used after an idle time.
 */
#ifndef SOCKET_CONNECTION_H
#define SOCKET_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "../system.h"

enum connection_state {
    CONNECTION_READY,
    CONNECTION_BUSY,    /* nothing can be sent now; after a wait: its time is over */
    CONNECTION_STOPPED, /* the handler must stop, and no time is left */
    CONNECTION_LOST,    /* connection->error has the reason */
};

struct connection {
    const weir_host *host;
    const weir_connecting *connecting;
    const char *to;   /* the option; borrowed */
    const char *peer; /* for messages: what follows its scheme */
    uint32_t kind;    /* WEIR_CONNECT_* */
    int64_t connect_timeout_ms, send_timeout_ms;
    struct wr_own_fd own; /* the socket, non-blocking */
    int error;            /* errno of the last failure */
    uint32_t first;       /* which address of the name to try first */
    int64_t opened_ms;    /* when it was connected, or resolved again */
};

void wr_connection_init(struct connection *connection, const weir_host *host);

/* [create] Sets what the option `to` names, one of those kinds. Returns false after host->refuse. */
bool wr_connection_set(struct connection *connection, const char *to, uint32_t kinds);

/* Whether it takes datagrams; otherwise it takes a stream of bytes. */
static inline bool wr_connection_has_datagrams(const struct connection *connection)
{
    return connection->kind & (WEIR_CONNECT_UDP | WEIR_CONNECT_UNIX_DGRAM);
}

/* Resolves the name and connects, within timeout_ms. Returns false with RETRY and the reason. */
bool wr_connection_open(struct connection *connection, int64_t timeout_ms, weir_outcome *outcome);

/* Resolves the name again and connects to what it found. Keeps the present socket if that fails. */
void wr_connection_refresh(struct connection *connection);

/* Reads and discards what the peer has sent. LOST: the peer has closed the connection, or it failed. */
enum connection_state wr_connection_check(struct connection *connection);

/* Sends without waiting. READY: *count bytes were sent. */
enum connection_state wr_connection_send(struct connection *connection, const char *data, size_t length,
                                         size_t *count);

/* Waits until the socket can be written to, at most until then. */
enum connection_state wr_connection_wait(struct connection *connection, int64_t until_ms);

/* Sets the code, and as the reason why nothing was sent. The state is not READY. */
void wr_connection_fail(const struct connection *connection, enum connection_state state, int code,
                        weir_outcome *outcome);

/* The error that the network has reported for an earlier datagram, and clears it; 0: none. */
int wr_connection_take_error(const struct connection *connection);

/* How many of the bytes sent the peer's system has not acknowledged (TCP). */
size_t wr_connection_count_unacknowledged(const struct connection *connection);

#endif
