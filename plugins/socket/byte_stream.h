/* byte_stream: sends lines over a connection that is a stream of bytes, TCP or a Unix socket.
 *
 * On one connection the peer gets whole lines, each once. An event of which a part was sent when the connection
 * was lost is not settled, so the core offers it again, and it is sent again from its start. Lines that were
 * settled, but that the peer's system had not acknowledged when a TCP connection was lost, are sent again too:
 * so a copy of them is kept. */
#ifndef SOCKET_BYTE_STREAM_H
#define SOCKET_BYTE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "connection.h"
#include "text/buffer.h"

struct byte_stream {
    struct connection *connection;
    const weir_encoder *encoder;
    int64_t emit_ms; /* when the current emit was called */

    /* The last bytes that were sent on this connection, from the start of a line. They include those that the
     * peer has not acknowledged. */
    struct wr_buffer sent;
    size_t loose; /* how many bytes at the end of `sent` belong to an event that is not settled */

    /* What is sent before anything else: lines that are sent again or, if `torn`, the rest of the event of
     * which a part was sent on this connection. */
    struct wr_buffer first;
    bool torn;
    char origin[33]; /* of the torn event */
    uint64_t end;    /* the sequence number behind the torn event */
};

void wr_byte_stream_init(struct byte_stream *stream, struct connection *connection,
                         const weir_encoder *encoder);
void wr_byte_stream_fini(struct byte_stream *stream);

/* Closes the connection. What may have been lost with it is sent on the next one. */
void wr_byte_stream_close(struct byte_stream *stream);

/* As the callback. */
void wr_byte_stream_emit(struct byte_stream *stream, const weir_batch *batch, weir_outcome *outcome);

/* As the callback: waits until the peer's system has acknowledged everything (TCP). */
void wr_byte_stream_flush(struct byte_stream *stream, int64_t timeout_ms, weir_outcome *outcome);

/* After a while without values: as flush, if the connection was lost. */
void wr_byte_stream_wake(struct byte_stream *stream, weir_outcome *outcome);

/* Whether there is something that the peer's system has not acknowledged, or that must be sent again. */
bool wr_byte_stream_is_unsettled(const struct byte_stream *stream);

#endif
