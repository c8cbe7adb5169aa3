/* framing: whether it is certain where a request ends. What a proxy in front may understand otherwise is
 * refused. */
#ifndef WEIR_PLUGINS_FRAMING_H
#define WEIR_PLUGINS_FRAMING_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

struct framing {
    unsigned status;  /* 0: it is certain; else the status of the response */
    char reason[160]; /* in words */
};

/* How often a request has a header. */
unsigned framing_count_headers(struct MHD_Connection *connection, const char *name);

/* Checks Content-Length and Transfer-Encoding. needs_body: one of them is required. body_limit: the largest
 * Content-Length. */
void framing_check(struct framing *framing, struct MHD_Connection *connection, bool needs_body,
                   uint64_t body_limit);

/* Percent-decodes a text in place, as libmicrohttpd does, but a NUL becomes the character 1: a text does not
 * end where its sender has hidden one. Returns its length. */
size_t framing_decode(void *ctx, struct MHD_Connection *connection, char *text);

#endif
