/* socket: sends values as lines over UDP, TCP or a Unix socket.
 *
 * connection.c connects and waits, datagrams.c and byte_stream.c send. */

#include <stdio.h>
#include <stdlib.h>

#include <weir/handler.h>

#include "../output.h"
#include "byte_stream.h"
#include "connection.h"
#include "datagrams.h"

enum { LOOK_MS = 200 /* when to look whether the connection was lost after the last values */ };

struct socket_options {
    const char *to;
    int64_t datagram_bytes, connect_timeout_ns, send_timeout_ns, resolve_every_ns;
};

static const weir_option socket_option_table[] = {
    WEIR_OPTION_ROW("to", STRING, WEIR_OPTION_REQUIRED | WEIR_OPTION_DESTINATION, NULL, NULL,
                    "the destination: udp://HOST:PORT, tcp://HOST:PORT, unix:/PATH or unix-dgram:/PATH",
                    struct socket_options, to),
    WEIR_OPTION_ROW("datagram_bytes", SIZE, 0, "1432B", "64B..65507B", "udp, unix-dgram: the largest datagram",
                    struct socket_options, datagram_bytes),
    WEIR_OPTION_ROW("connect_timeout", DURATION, 0, "10s", "10ms..1h", "time limit for connecting",
                    struct socket_options, connect_timeout_ns),
    WEIR_OPTION_ROW("send_timeout", DURATION, 0, "10s", "10ms..1h",
                    "how long the peer may take no data before the handler gives up and retries",
                    struct socket_options, send_timeout_ns),
    WEIR_OPTION_ROW("resolve_every", DURATION, 0, "1m", "10ms..1d",
                    "udp: how often the host's name is resolved again", struct socket_options,
                    resolve_every_ns),
    {0},
};

static const weir_default socket_defaults[] = {{"overflow", "drop_oldest"}, {NULL, NULL}};

struct socket_handler {
    const weir_host *host;
    struct connection connection;
    struct datagrams datagrams; /* one of these is used */
    struct byte_stream stream;
    bool has_datagrams;
};

/* ---- Creating -------------------------------------------------------------------------------- */

static void set_up(struct socket_handler *handler, const struct socket_options *options)
{
    const weir_host *host = handler->host;
    const weir_encoder *encoder = host->service(host, WEIR_SERVICE_ENCODER);
    struct connection *connection = &handler->connection;
    connection->connect_timeout_ms = wr_output_to_ms(options->connect_timeout_ns);
    connection->send_timeout_ms = wr_output_to_ms(options->send_timeout_ns);
    handler->has_datagrams = wr_connection_has_datagrams(connection);
    wr_byte_stream_init(&handler->stream, connection, encoder);
    handler->datagrams = (struct datagrams){
        .connection = connection,
        .encoder = encoder,
        .most_bytes = (size_t)options->datagram_bytes,
        .resolve_every_ms = wr_output_to_ms(options->resolve_every_ns),
    };
    if (handler->has_datagrams)
        encoder->limit_lines(host, handler->datagrams.most_bytes);
}

static void *socket_create(const weir_host *host, const void *given)
{
    const struct socket_options *options = given;
    struct socket_handler *handler = wr_system_allocate(host, sizeof *handler);
    if (!handler)
        return NULL;
    handler->host = host;
    wr_connection_init(&handler->connection, host);
    if (!wr_connection_set(&handler->connection, options->to, 0)) {
        free(handler);
        return NULL;
    }
    set_up(handler, options);
    return handler;
}

static void socket_destroy(void *self)
{
    struct socket_handler *handler = self;
    wr_byte_stream_fini(&handler->stream);
    free(handler);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void socket_open(void *self, weir_outcome *outcome)
{
    struct socket_handler *handler = self;
    wr_connection_open(&handler->connection, handler->connection.connect_timeout_ms, outcome);
}

static void socket_close(void *self)
{
    struct socket_handler *handler = self;
    if (handler->has_datagrams)
        wr_own_fd_close(&handler->connection.own);
    else
        wr_byte_stream_close(&handler->stream);
}

static void socket_abandon(void *self)
{
    const struct socket_handler *handler = self;
    wr_own_fd_abandon(&handler->connection.own);
}

/* A datagram would be needed to find out whether somebody receives over UDP. */
static void socket_probe(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    struct socket_handler *handler = self;
    struct connection *connection = &handler->connection;
    if (timeout_ms > connection->connect_timeout_ms)
        timeout_ms = connection->connect_timeout_ms;
    if (!wr_connection_open(connection, timeout_ms, outcome))
        return;
    wr_own_fd_close(&connection->own);
    if (connection->kind & WEIR_CONNECT_UDP)
        snprintf(outcome->reason, sizeof outcome->reason,
                 "there is a route; without sending it is not known whether anybody receives");
    else
        snprintf(outcome->reason, sizeof outcome->reason, "%.200s accepts %s", connection->peer,
                 handler->has_datagrams ? "datagrams" : "connections");
}

/* ---- Sending --------------------------------------------------------------------------------- */

static void look_later(const struct socket_handler *handler)
{
    if (!handler->has_datagrams && wr_byte_stream_is_unsettled(&handler->stream))
        handler->host->wake_in(handler->host, LOOK_MS);
}

static void socket_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct socket_handler *handler = self;
    if (handler->has_datagrams)
        wr_datagrams_emit(&handler->datagrams, batch, outcome);
    else
        wr_byte_stream_emit(&handler->stream, batch, outcome);
    look_later(handler);
}

static void socket_flush(void *self, int64_t timeout_ms, weir_outcome *outcome)
{
    struct socket_handler *handler = self;
    if (!handler->has_datagrams)
        wr_byte_stream_flush(&handler->stream, timeout_ms, outcome);
}

static void socket_wake(void *self, int why, weir_outcome *outcome)
{
    struct socket_handler *handler = self;
    if (handler->has_datagrams || why != WEIR_WAKE_TIMER)
        return;
    wr_byte_stream_wake(&handler->stream, outcome);
    look_later(handler);
}

static const weir_handler_type socket_type = {
    .size = sizeof socket_type,
    .abi = WEIR_ABI,
    .name = "socket",
    .summary = "sends values as lines over UDP, TCP or a Unix socket",
    .formats = WEIR_FORMAT_LINES,
    .options = socket_option_table,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct socket_options),
    .defaults = socket_defaults,
    .create = socket_create,
    .open = socket_open,
    .emit = socket_emit,
    .flush = socket_flush,
    .close = socket_close,
    .destroy = socket_destroy,
    .wake = socket_wake,
    .abandon = socket_abandon,
    .probe = socket_probe,
    .flags = WEIR_TYPE_WORKS_AT_EXIT,
};

const weir_handler_type *weir_handler_type_at(uint32_t index)
{
    return index == 0 ? &socket_type : NULL;
}
