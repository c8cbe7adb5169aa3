/* http_client: a request to an HTTP server, by the libcurl of the handler type http; so only those who use this
 * load it. */
#ifndef WEIR_TOOLS_HTTP_CLIENT_H
#define WEIR_TOOLS_HTTP_CLIENT_H

#include <stdbool.h>

#include "text/buffer.h"

struct json_object;

enum { HTTP_CLIENT_TYPE_ROOM = 128 };

struct http_call {
    const char *url, *method;
    const char *headers[2]; /* "Name: value"; NULL: none */
    const char *body;       /* NULL: none */
    size_t reply_bytes;     /* of the longest reply; 0: 1 MiB */
};

struct http_reply {
    long status;                      /* 0: there is none */
    char type[HTTP_CLIENT_TYPE_ROOM]; /* Content-Type; "": not given, or longer */
    struct wr_buffer body;
    const char *problem; /* why there is none */
};

/* Whether a text begins like a URL of an HTTP server. */
bool http_client_is_url(const char *text);

/* Loads libcurl. what: who needs it, for messages. Returns false after printing why it cannot be used. */
bool http_client_load(const char *what);

/* Sends a request; the caller frees the body. Returns whether there is a reply. */
bool http_client_send(const struct http_call *call, struct http_reply *reply);

/* Sends a request whose reply is a JSON object. Returns it, owned by the caller; NULL after printing why there
 * is none. other: what a server is called that replies otherwise, such as "an MLBench server". */
struct json_object *http_client_ask(const char *what, const char *other, const struct http_call *call);

#endif
