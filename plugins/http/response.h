/* response: classifies a server's reply: what it means for the values that were sent, and the message. */
#ifndef HTTP_RESPONSE_H
#define HTTP_RESPONSE_H

#include <stddef.h>
#include <stdint.h>

#include "client.h"

enum response_kind {
    RESPONSE_DELIVERED,
    RESPONSE_RETRY,     /* retry after a delay */
    RESPONSE_TOO_LARGE, /* retry with a smaller request */
    RESPONSE_REFUSED,   /* permanently */
};

/* The longest delay that the core allows: for errors that only the user can fix, such as wrong credentials. */
#define RESPONSE_DELAY_MAX INT64_MAX

struct response {
    enum response_kind kind;
    int64_t retry_after_ms;  /* RESPONSE_RETRY: the server's delay; 0: none */
    long status;             /* 0: no response */
    uint32_t dropped_points; /* RESPONSE_REFUSED: lines that were not stored, although others were; 0: all */
    char message[256];
    const char *const *secrets; /* of the request */
};

/* The request, for messages. */
struct response_request {
    const char *method, *url, *host; /* without secrets */
    const char *peer;                /* host:port of the connection: the proxy, if there is one */
    int64_t timeout_ms, connect_timeout_ms;
    const char *const *secrets; /* replaced by asterisks in messages; ends with NULL */
};

/* Sets the message, in which secrets are masked. */
void wr_response_set_message(struct response *response, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Modifies the reply's text. */
void wr_response_classify(const struct response_request *request, struct client_reply *reply,
                          struct response *response);

#endif
