/* request: one HTTP request to the collector: what was asked, its body, and the response. */
#ifndef WEIR_PLUGINS_COLLECTOR_REQUEST_H
#define WEIR_PLUGINS_COLLECTOR_REQUEST_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/host.h>

#include "text/buffer.h"

struct json_object;

struct request {
    struct MHD_Connection *connection;
    const char *method;
    char path[512];         /* without "/" and ".json" at the end */
    struct wr_buffer body;  /* its data: NULL: there is none; else it ends in NUL */
    bool is_too_long;       /* the body; then it is not kept */
    enum MHD_Result result; /* of the reply */
    bool is_replied;
    bool is_endless;     /* the reply has no end: it may take any time */
    const char *allowed; /* of a reply 405: the methods */
};

/* Copies the path without what is left out. Returns false if it is too long, or has control characters. */
bool request_set_path(struct request *request, const char *path);

/* Keeps a part of the body, up to `limit` bytes in all. Returns false if out of memory. */
bool request_put_body(struct request *request, const char *data, size_t length, size_t limit);

bool request_is(const struct request *request, const char *method); /* GET is also HEAD */

/* A header, or NULL. */
const char *request_header(const struct request *request, const char *name);

/* A parameter of the query, or NULL. */
const char *request_parameter(const struct request *request, const char *name);

/* Whether the body is of this type, such as "application/json". */
bool request_has_type(const struct request *request, const char *type);

/* Replies with a response, which it takes over; NULL: out of memory. */
void request_reply_response(struct request *request, unsigned status, struct MHD_Response *response);

/* Replies with JSON, which it frees. NULL: out of memory. */
void request_reply(struct request *request, unsigned status, struct json_object *json);

/* Replies with {"status": ..., "message": ...}; the status is a number below /api/v1, and a name elsewhere.
 * Returns false. */
bool request_fail(struct request *request, unsigned status, const char *format, ...) WEIR_PRINTF(3, 4);

/* Replies with a text or file, which is copied. name: as what to save it; NULL: shown. */
void request_reply_bytes(struct request *request, unsigned status, const char *type, const void *bytes,
                         size_t length, const char *name);

struct request_field {
    const char *name, *value; /* a header; one of them NULL: none */
};

/* Replies with a body, which is copied, and more headers. type: NULL if there is no body. */
void request_reply_fields(struct request *request, unsigned status, const char *type, const void *bytes,
                          size_t length, const struct request_field *fields, size_t count);

/* Replies that the method is not allowed. */
void request_refuse_method(struct request *request, const char *allowed);

/* Sends the browser to another path, with a cookie if that is not NULL. */
void request_reply_redirect(struct request *request, const char *path, const char *cookie);

#endif
