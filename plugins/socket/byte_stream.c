#include "byte_stream.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lines.h"
#include "../output.h"

enum {
    CHUNK_BYTES = 64 * 1024, /* bytes encoded at a time, and kept beyond what is not acknowledged */
    FLUSH_POLL_MS = 5,       /* interval of looking for acknowledgements */
};

void wr_byte_stream_init(struct byte_stream *stream, struct connection *connection, const weir_encoder *encoder)
{
    *stream = (struct byte_stream){.connection = connection, .encoder = encoder};
}

void wr_byte_stream_fini(struct byte_stream *stream)
{
    const weir_host *host = stream->connection->host;
    if (stream->first.length && !stream->torn)
        host->log(
            host, WEIR_LOG_WARNING,
            "%zu bytes that were not acknowledged when the connection to %s was lost have not been sent again",
            stream->first.length, stream->connection->peer);
    wr_buffer_fini(&stream->sent);
    wr_buffer_fini(&stream->first);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static void remove_front(struct wr_buffer *text, size_t length)
{
    text->length -= length;
    if (text->length)
        memmove(text->data, text->data + length, text->length);
}

/* Returns the start of the line that the position is in. */
static size_t line_start(const struct wr_buffer *text, size_t at)
{
    const char *before = at ? memrchr(text->data, '\n', at) : NULL;
    return before ? (size_t)(before - text->data) + 1 : 0;
}

/* ---- What was sent --------------------------------------------------------------------------- */

/* The system does not report which bytes of a Unix socket were read. */
static bool is_acknowledged(const struct byte_stream *stream)
{
    return stream->connection->kind & WEIR_CONNECT_TCP;
}

/* Without memory nothing is kept, and then nothing is sent again. */
static void keep(struct byte_stream *stream, const char *data, size_t length)
{
    struct wr_buffer *sent = &stream->sent;
    if (!is_acknowledged(stream))
        return;
    size_t needed = wr_connection_count_unacknowledged(stream->connection);
    wr_buffer_put(sent, data, length);
    if (sent->failed)
        wr_buffer_clear(sent);
    if (sent->length > 2 * (needed + CHUNK_BYTES))
        remove_front(sent, line_start(sent, sent->length - needed));
}

/* Where the settled lines begin that the peer may not have got, and where they end. The first of them may have
 * been torn when the connection was lost. */
static size_t find_lost(const struct byte_stream *stream, size_t *end)
{
    const struct wr_buffer *sent = &stream->sent;
    size_t count = wr_connection_count_unacknowledged(stream->connection);
    *end = sent->length > stream->loose ? sent->length - stream->loose : 0;
    size_t start = line_start(sent, sent->length > count ? sent->length - count : 0);
    return start < *end ? start : *end;
}

/* The connection is lost: what it may have lost goes to the front of what is sent first. A torn event is
 * offered again by the core. */
static void collect_lost(struct byte_stream *stream)
{
    struct wr_buffer lost = {0};
    size_t end, start = find_lost(stream, &end);
    if (stream->torn)
        stream->first.length = 0;
    if (!stream->sent.data)
        return;
    if (end > start)
        stream->connection->host->count(stream->connection->host, "sent_again.bytes", end - start);
    wr_buffer_put(&lost, stream->sent.data + start, end - start);
    wr_buffer_put(&lost, stream->first.data, stream->first.length);
    if (lost.failed) {
        wr_buffer_fini(&lost);
    } else {
        wr_buffer_fini(&stream->first);
        stream->first = lost;
    }
}

static void forget_connection(struct byte_stream *stream)
{
    stream->sent.length = stream->loose = 0;
    stream->torn = false;
}

/* Gives up a connection that failed. If the peer lives, what the system holds for it may still arrive, and then
 * twice. To reset the connection would prevent that, but some systems then discard what was received. */
static void lose_connection(struct byte_stream *stream)
{
    struct connection *connection = stream->connection;
    if (wr_own_fd_is_open(&connection->own) && is_acknowledged(stream))
        collect_lost(stream);
    else if (stream->torn)
        stream->first.length = 0;
    forget_connection(stream);
    wr_own_fd_close(&connection->own);
}

/* ---- Sending --------------------------------------------------------------------------------- */

/* When to stop waiting for a peer that takes nothing. */
static int64_t wait_end_ms(const struct byte_stream *stream, bool partial)
{
    return wr_output_wait_end_ms(wr_output_now_ms() + stream->connection->send_timeout_ms, partial,
                                 stream->emit_ms);
}

/* Sends until nothing more can be sent now (BUSY), from *sent on. */
static enum connection_state push(struct byte_stream *stream, const char *data, size_t length, size_t *sent)
{
    enum connection_state state = CONNECTION_READY;
    while (*sent < length && state == CONNECTION_READY) {
        size_t count;
        state = wr_connection_send(stream->connection, data + *sent, length - *sent, &count);
        if (state == CONNECTION_READY)
            keep(stream, data + *sent, count);
        *sent += count;
    }
    return state;
}

/* BUSY: the peer has taken nothing for some time, or it is later than until_ms. */
static enum connection_state send_first(struct byte_stream *stream, int64_t until_ms)
{
    struct wr_buffer *first = &stream->first;
    enum connection_state state = CONNECTION_READY;
    while (first->length && state == CONNECTION_READY) {
        size_t sent = 0;
        state = push(stream, first->data, first->length, &sent);
        remove_front(first, sent);
        if (stream->torn)
            stream->loose += sent;
        if (state == CONNECTION_BUSY)
            state =
                wr_connection_wait(stream->connection, wr_output_least(until_ms, wait_end_ms(stream, false)));
    }
    return state;
}

/* The rest of a torn event was sent: the event is settled if the batch begins with it. If the core has dropped
 * it meanwhile, it does not. */
static void settle_torn(struct byte_stream *stream, const weir_batch *batch, weir_outcome *outcome)
{
    if (!stream->torn)
        return;
    if (strcmp(stream->origin, batch->origin) == 0 && stream->end > batch->sequence &&
        stream->end <= batch->sequence + batch->count)
        outcome->done = (uint32_t)(stream->end - batch->sequence);
    stream->torn = false;
    stream->loose = 0;
}

/* A part of an event was sent. Keeps the rest of it, in case the connection remains. */
static enum connection_state tear(struct byte_stream *stream, const weir_batch *batch, uint32_t start,
                                  const weir_encoded *encoded, size_t settled_bytes, size_t sent)
{
    const weir_host *host = stream->connection->host;
    uint32_t settled = stream->encoder->settled(host, settled_bytes, NULL);
    size_t end = wr_lines_event_end(host, stream->encoder, settled, sent, encoded->length);
    stream->loose = sent - settled_bytes;
    stream->torn = true;
    stream->end = batch->sequence + start + stream->encoder->settled(host, end, NULL);
    snprintf(stream->origin, sizeof stream->origin, "%s", batch->origin);
    wr_buffer_put(&stream->first, encoded->data + sent, end - sent);
    if (!stream->first.failed)
        return CONNECTION_READY;
    wr_buffer_clear(&stream->first);
    stream->connection->error = ENOMEM;
    return CONNECTION_LOST;
}

static enum connection_state send_encoded(struct byte_stream *stream, const weir_batch *batch,
                                          const weir_encoded *encoded, weir_outcome *outcome)
{
    const weir_host *host = stream->connection->host;
    const uint32_t start = outcome->done;
    size_t sent = 0, end;
    enum connection_state state;
    do {
        state = push(stream, encoded->data, encoded->length, &sent);
        bool partial = start > 0 || stream->encoder->settled(host, sent, NULL) > 0;
        if (state == CONNECTION_BUSY)
            state = wr_connection_wait(stream->connection, wait_end_ms(stream, partial));
    } while (state == CONNECTION_READY && sent < encoded->length);
    if (sent == encoded->length) {
        outcome->done += encoded->count;
        return state;
    }
    outcome->done += stream->encoder->settled(host, sent, &end);
    if (sent > end && tear(stream, batch, start, encoded, end, sent) == CONNECTION_LOST)
        return CONNECTION_LOST;
    return state;
}

/* ---- Acknowledgements ------------------------------------------------------------------------ */

bool wr_byte_stream_is_unsettled(const struct byte_stream *stream)
{
    const struct connection *connection = stream->connection;
    if (stream->first.length)
        return true;
    return is_acknowledged(stream) && wr_own_fd_is_open(&connection->own) &&
           wr_connection_count_unacknowledged(connection) > 0;
}

/* Waits until the peer's system has acknowledged everything. BUSY: it has not until then. */
static enum connection_state await_acknowledgement(struct connection *connection, int64_t until_ms)
{
    while (wr_connection_count_unacknowledged(connection) > 0) {
        struct pollfd entry = {.fd = connection->own.fd};
        connection->host->wait(connection->host, 0); /* a fork point */
        if (poll(&entry, 1, FLUSH_POLL_MS) > 0) {
            connection->error =
                wr_own_fd_is_open(&connection->own) ? wr_connection_take_error(connection) : EBADF;
            if (!connection->error)
                connection->error = EPIPE;
            return CONNECTION_LOST;
        }
        if (!wr_output_may_wait(connection->host))
            return CONNECTION_STOPPED;
        if (wr_output_now_ms() >= until_ms)
            return CONNECTION_BUSY;
    }
    return CONNECTION_READY;
}

/* Sends what comes first. Lines that are sent again must be acknowledged before new values are taken: otherwise
 * a peer that resets every connection would make the lines to send again more and more. */
static enum connection_state send_again(struct byte_stream *stream)
{
    bool again = stream->first.length && !stream->torn;
    enum connection_state state = send_first(stream, INT64_MAX);
    if (state != CONNECTION_READY || !again || !is_acknowledged(stream))
        return state;
    return await_acknowledgement(stream->connection, wait_end_ms(stream, false));
}

/* ---- Connecting ------------------------------------------------------------------------------ */

/* Unread data of the peer would make the system reset the connection, and the peer lose what it has not read.
 */
void wr_byte_stream_close(struct byte_stream *stream)
{
    size_t sent;
    struct connection *connection = stream->connection;
    if (!wr_own_fd_is_open(&connection->own)) {
        lose_connection(stream);
        return;
    }
    if (wr_connection_check(connection) == CONNECTION_LOST && wr_byte_stream_is_unsettled(stream)) {
        lose_connection(stream);
        return;
    }
    if (stream->torn)
        wr_connection_send(connection, stream->first.data, stream->first.length, &sent);
    if (stream->torn)
        stream->first.length = 0;
    forget_connection(stream);
    wr_own_fd_close(&connection->own);
}

/* A connection that the peer has closed while there was nothing to send has lost nothing, except what was not
 * acknowledged. */
static bool reach(struct byte_stream *stream, int64_t timeout_ms, weir_outcome *outcome)
{
    struct connection *connection = stream->connection;
    if (connection->own.fd >= 0 && !wr_own_fd_is_open(&connection->own))
        lose_connection(stream);
    if (connection->own.fd >= 0 && wr_connection_check(connection) == CONNECTION_LOST)
        lose_connection(stream);
    if (connection->own.fd >= 0 || wr_connection_open(connection, timeout_ms, outcome))
        return true;
    outcome->code = WEIR_OUTCOME_REOPEN;
    return false;
}

/* ---- Outcomes -------------------------------------------------------------------------------- */

/* They were counted as delivered, and are lost if the program ends before they are sent again. */
static void name_lost_bytes(const struct byte_stream *stream, weir_outcome *outcome)
{
    size_t length = strlen(outcome->reason);
    if (stream->first.length)
        snprintf(outcome->reason + length, sizeof outcome->reason - length, "; %zu bytes to be sent again",
                 stream->first.length);
}

static void report(struct byte_stream *stream, enum connection_state state, weir_outcome *outcome)
{
    if (state == CONNECTION_READY || (state == CONNECTION_BUSY && outcome->done))
        return;
    wr_connection_fail(stream->connection, state,
                       state == CONNECTION_STOPPED ? WEIR_OUTCOME_RETRY : WEIR_OUTCOME_REOPEN, outcome);
    if (state == CONNECTION_STOPPED)
        return;
    lose_connection(stream);
    name_lost_bytes(stream, outcome);
}

void wr_byte_stream_emit(struct byte_stream *stream, const weir_batch *batch, weir_outcome *outcome)
{
    const weir_host *host = stream->connection->host;
    weir_encoded encoded;
    outcome->done = 0;
    stream->emit_ms = wr_output_now_ms();
    if (!reach(stream, stream->connection->connect_timeout_ms, outcome))
        return;
    enum connection_state state = send_again(stream);
    if (state == CONNECTION_READY)
        settle_torn(stream, batch, outcome);
    while (state == CONNECTION_READY && outcome->done < batch->count) {
        host->wait(host, 0); /* a fork point */
        if (!stream->encoder->encode(host, batch, outcome->done, CHUNK_BYTES, &encoded)) {
            wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "out of memory");
            return;
        }
        state = send_encoded(stream, batch, &encoded, outcome);
    }
    report(stream, state, outcome);
}

/* ---- Flushing -------------------------------------------------------------------------------- */

static enum connection_state settle_until(struct byte_stream *stream, int64_t until_ms)
{
    enum connection_state state = send_first(stream, until_ms);
    if (state != CONNECTION_READY || !is_acknowledged(stream))
        return state;
    return await_acknowledgement(stream->connection, until_ms);
}

/* Reconnects itself: without values the core does not open a handler again. It tries that once, since the core
 * calls it again after a back-off. */
void wr_byte_stream_flush(struct byte_stream *stream, int64_t timeout_ms, weir_outcome *outcome)
{
    struct connection *connection = stream->connection;
    const int64_t until_ms = timeout_ms < 0 ? INT64_MAX : wr_output_now_ms() + timeout_ms;
    enum connection_state state = CONNECTION_READY;
    for (int tries = 0; tries < 2 && wr_byte_stream_is_unsettled(stream); tries++) {
        int64_t left_ms = wr_output_least(connection->connect_timeout_ms, until_ms - wr_output_now_ms());
        if (!wr_own_fd_is_open(&connection->own))
            lose_connection(stream);
        if (connection->own.fd < 0 && !wr_connection_open(connection, left_ms, outcome)) {
            name_lost_bytes(stream, outcome);
            return;
        }
        state = settle_until(stream, until_ms);
        if (state != CONNECTION_LOST)
            break;
        lose_connection(stream);
    }
    if (!wr_byte_stream_is_unsettled(stream))
        return;
    if (state == CONNECTION_LOST)
        wr_connection_fail(connection, state, WEIR_OUTCOME_RETRY, outcome);
    else
        wr_system_fail(outcome, WEIR_OUTCOME_RETRY, "send %s: the data is not acknowledged yet",
                       connection->peer);
    name_lost_bytes(stream, outcome);
}

/* Looks whether the connection was lost after the last values were sent. */
void wr_byte_stream_wake(struct byte_stream *stream, weir_outcome *outcome)
{
    struct connection *connection = stream->connection;
    if (!stream->first.length && wr_own_fd_is_open(&connection->own) &&
        await_acknowledgement(connection, 0) != CONNECTION_LOST)
        return;
    wr_byte_stream_flush(stream, connection->connect_timeout_ms, outcome);
}
