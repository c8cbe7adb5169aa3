/* nats_reply: what JetStream's server sends back: an acknowledgement, or an error. */
#ifndef NATS_REPLY_H
#define NATS_REPLY_H

#include <stdbool.h>
#include <stddef.h>

enum nats_reply_kind {
    NATS_REPLY_STORED,    /* of a request: it succeeded */
    NATS_REPLY_DUPLICATE, /* it was stored before: the server has recognised its id */
    NATS_REPLY_REFUSED,   /* the same message will never be stored */
    NATS_REPLY_FAILED,    /* it may be stored later */
};

enum { NATS_REPLY_NO_STREAM = 10059 }; /* err_code: the stream does not exist */

struct nats_reply {
    enum nats_reply_kind kind;
    int code;       /* the server's err_code; 0: none */
    char text[160]; /* REFUSED, FAILED: why */
};

enum nats_reply_of {
    NATS_REPLY_OF_PUBLISH, /* stored: it has the stream, and the message's number in it */
    NATS_REPLY_OF_REQUEST, /* succeeded: it has no error */
};

/* Reads the JSON text of a reply. What is not one is FAILED. */
void wr_nats_reply_read(struct nats_reply *reply, enum nats_reply_of of, const char *data, size_t length);

#endif
