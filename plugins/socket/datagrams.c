#include "datagrams.h"

#include <errno.h>

#include "../lines.h"
#include "../output.h"

enum {
    CHUNK_BYTES = 64 * 1024, /* bytes encoded at a time */
    NO_BUFFER_MS = 5,        /* interval of attempts while the system has no buffers */
};

/* ---- One datagram ---------------------------------------------------------------------------- */

/* When to stop waiting for a receiver that takes nothing. */
static int64_t wait_end_ms(const struct datagrams *datagrams, bool partial)
{
    return wr_output_wait_end_ms(wr_output_now_ms() + datagrams->connection->send_timeout_ms, partial,
                                 datagrams->emit_ms);
}

/* ENOBUFS: poll would report that the socket can be written to. */
static enum connection_state wait_for_room(struct connection *connection, int64_t until_ms)
{
    if (connection->error == ENOBUFS) {
        bool stopping = !connection->host->wait(connection->host, NO_BUFFER_MS);
        if (stopping && !wr_output_may_wait(connection->host))
            return CONNECTION_STOPPED;
        if (wr_output_now_ms() >= until_ms)
            return CONNECTION_BUSY;
    }
    return wr_connection_wait(connection, until_ms);
}

/* The network reports on this machine at once that nobody receives; from elsewhere it may do so later. */
static enum connection_state check_receipt(struct connection *connection)
{
    if (!(connection->kind & WEIR_CONNECT_UDP))
        return CONNECTION_READY;
    connection->error = wr_connection_take_error(connection);
    return connection->error ? CONNECTION_LOST : CONNECTION_READY;
}

/* Sends a datagram. BUSY: the receiver has taken nothing for some time. LOST with EMSGSIZE: it is too long. */
static enum connection_state send_one(struct datagrams *datagrams, const char *data, size_t length,
                                      bool partial)
{
    struct connection *connection = datagrams->connection;
    const int64_t until_ms = wait_end_ms(datagrams, partial);
    enum connection_state state;
    size_t sent;
    while ((state = wr_connection_send(connection, data, length, &sent)) == CONNECTION_BUSY) {
        state = wait_for_room(connection, until_ms);
        if (state != CONNECTION_READY)
            return state;
    }
    return state == CONNECTION_READY ? check_receipt(connection) : state;
}

/* What happens in one call of emit. */
struct delivery {
    struct datagrams *datagrams;
    const weir_outcome *outcome;
    enum connection_state state;
};

static enum lines_result send_lines(void *ctx, const char *lines, size_t length, bool at_event)
{
    struct delivery *delivery = ctx;
    (void)at_event;
    delivery->state = send_one(delivery->datagrams, lines, length, delivery->outcome->done > 0);
    if (delivery->state == CONNECTION_READY)
        return LINES_WRITTEN;
    if (delivery->state != CONNECTION_LOST || delivery->datagrams->connection->error != EMSGSIZE)
        return LINES_FAILED;
    delivery->state = CONNECTION_READY;
    return LINES_TOO_LONG;
}

/* ---- Emitting -------------------------------------------------------------------------------- */

/* What the network has reported since the last emit concerns datagrams that were counted as delivered. */
static bool reach(struct datagrams *datagrams, weir_outcome *outcome)
{
    struct connection *connection = datagrams->connection;
    const int64_t now_ms = datagrams->emit_ms;
    if (!wr_own_fd_is_open(&connection->own))
        wr_own_fd_close(&connection->own);
    if (connection->own.fd >= 0 && connection->kind & WEIR_CONNECT_NAME &&
        now_ms - connection->opened_ms >= datagrams->resolve_every_ms)
        wr_connection_refresh(connection);
    if (connection->own.fd >= 0 || wr_connection_open(connection, connection->connect_timeout_ms, outcome))
        return true;
    outcome->code = WEIR_OUTCOME_REOPEN;
    return false;
}

static void report(struct datagrams *datagrams, enum connection_state state, weir_outcome *outcome)
{
    struct connection *connection = datagrams->connection;
    if (state == CONNECTION_READY || (state == CONNECTION_BUSY && outcome->done))
        return;
    wr_connection_fail(connection, state, state == CONNECTION_LOST ? WEIR_OUTCOME_REOPEN : WEIR_OUTCOME_RETRY,
                       outcome);
    if (state == CONNECTION_LOST)
        connection->first++; /* a name may have an address where somebody receives */
}

void wr_datagrams_emit(struct datagrams *datagrams, const weir_batch *batch, weir_outcome *outcome)
{
    struct connection *connection = datagrams->connection;
    const weir_host *host = connection->host;
    struct delivery delivery = {.datagrams = datagrams, .outcome = outcome};
    const struct lines_writer writer = {host,         datagrams->encoder, datagrams->most_bytes,
                                        "a datagram", send_lines,         &delivery};
    weir_encoded encoded;
    outcome->done = 0;
    datagrams->emit_ms = wr_output_now_ms();
    if (!reach(datagrams, outcome))
        return;
    delivery.state = check_receipt(connection);
    while (delivery.state == CONNECTION_READY && outcome->done < batch->count && !outcome->rejected) {
        host->wait(host, 0); /* a fork point */
        if (!datagrams->encoder->encode(host, batch, outcome->done, CHUNK_BYTES, &encoded)) {
            wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "out of memory");
            return;
        }
        wr_lines_write_events(&writer, &encoded, outcome);
    }
    report(datagrams, delivery.state, outcome);
}
