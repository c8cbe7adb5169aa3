/* datagrams: sends whole events in datagrams, over UDP or to a Unix datagram socket. */
#ifndef SOCKET_DATAGRAMS_H
#define SOCKET_DATAGRAMS_H

#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "connection.h"

struct datagrams {
    struct connection *connection;
    const weir_encoder *encoder;
    size_t most_bytes;        /* of a datagram */
    int64_t resolve_every_ms; /* UDP: how often the name is resolved again */
    int64_t emit_ms;          /* when the current emit was called */
};

/* As the callback. */
void wr_datagrams_emit(struct datagrams *datagrams, const weir_batch *batch, weir_outcome *outcome);

#endif
