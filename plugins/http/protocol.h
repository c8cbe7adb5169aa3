/* protocol: how values of a format are sent, and what the server's responses mean for them. A new protocol is a
 * row in protocol.c. */
#ifndef HTTP_PROTOCOL_H
#define HTTP_PROTOCOL_H

#include <stdbool.h>

#include <weir/handler.h>

struct http;
struct client_reply;
struct response;
struct response_request;

struct protocol {
    const char *format;   /* NULL: any other format of `shape` */
    uint32_t shape;       /* WEIR_FORMAT_* bits */
    const char *path;     /* what the path of the URL ends in; NULL: anything */
    bool has_environment; /* OTEL_EXPORTER_OTLP_ENDPOINT and so on apply */

    void (*emit)(struct http *http, const weir_batch *batch, weir_outcome *outcome);
    void (*classify)(const struct response_request *request, struct client_reply *reply,
                     struct response *response);
};

/* Returns the protocol for the handler's format. */
const struct protocol *wr_protocol_find(const weir_host *host, const weir_encoder *encoder);

#endif
