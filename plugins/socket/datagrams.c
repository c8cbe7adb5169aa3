#include "datagrams.h"

#include <errno.h>
#include <stdio.h>

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

/* ---- Lines of an event ----------------------------------------------------------------------- */

/* Sends an event that is too long for a datagram, or for the network, in several. */
static enum connection_state send_lines(struct datagrams *datagrams, const char *lines, size_t length,
                                        bool partial, struct lines_refused *refused)
{
    enum connection_state state = CONNECTION_READY;
    for (size_t pos = 0, piece; pos < length && state == CONNECTION_READY; pos += piece) {
        piece = wr_lines_fit(lines + pos, length - pos, datagrams->most_bytes);
        if (!piece) {
            piece = wr_lines_first_length(lines + pos, length - pos);
            wr_lines_refuse(refused, lines + pos, piece, datagrams->most_bytes);
            continue;
        }
        state = send_one(datagrams, lines + pos, piece, partial);
        if (state == CONNECTION_LOST && datagrams->connection->error == EMSGSIZE) {
            state = CONNECTION_READY;
            wr_lines_refuse(refused, lines + pos, piece, piece - 1);
            refused->all = true;
        }
    }
    return state;
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* Finds the events for the next datagram: as many as fit, or one that is too long. Returns how many samples are
 * settled with them. */
static uint32_t find_events(const struct datagrams *datagrams, const weir_encoded *encoded, uint32_t settled,
                            size_t pos, size_t *end)
{
    const weir_host *host = datagrams->connection->host;
    uint32_t next = datagrams->encoder->settled(host, pos + datagrams->most_bytes, end);
    if (next > settled)
        return next;
    *end = wr_lines_event_end(host, datagrams->encoder, settled, pos + datagrams->most_bytes, encoded->length);
    return datagrams->encoder->settled(host, *end, NULL);
}

/* Sends what was encoded. Returns early behind events with refused values, so that `rejected` and the reason
 * apply to them alone. */
static enum connection_state send_encoded(struct datagrams *datagrams, const weir_encoded *encoded,
                                          weir_outcome *outcome)
{
    const uint32_t done_before = outcome->done;
    size_t pos = 0, end;
    for (uint32_t settled = 0, next; settled < encoded->count; settled = next, pos = end) {
        struct lines_refused refused = {0};
        next = find_events(datagrams, encoded, settled, pos, &end);
        enum connection_state state =
            send_lines(datagrams, encoded->data + pos, end - pos, outcome->done > 0, &refused);
        if (state != CONNECTION_READY)
            return state;
        outcome->done = done_before + next;
        if (refused.count) {
            wr_lines_report_refused(&refused, "a datagram", next - settled, outcome);
            return CONNECTION_READY;
        }
    }
    return CONNECTION_READY;
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
    weir_encoded encoded;
    outcome->done = 0;
    datagrams->emit_ms = wr_output_now_ms();
    if (!reach(datagrams, outcome))
        return;
    enum connection_state state = check_receipt(connection);
    while (state == CONNECTION_READY && outcome->done < batch->count && !outcome->rejected) {
        host->wait(host, 0); /* a fork point */
        if (!datagrams->encoder->encode(host, batch, outcome->done, CHUNK_BYTES, &encoded)) {
            wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "out of memory");
            return;
        }
        state = send_encoded(datagrams, &encoded, outcome);
    }
    report(datagrams, state, outcome);
}
