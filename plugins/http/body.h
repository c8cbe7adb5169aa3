/* body: builds a request body: a header, the encoded values, and compression. */
#ifndef HTTP_BODY_H
#define HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <zlib.h>

/* Buffers, created on first use. Zero-initialized: none yet. */
struct body {
    z_stream stream;
    bool ready;
    unsigned char *buffer;
    size_t buffer_bytes;
    char *whole; /* header and data */
    size_t whole_bytes;
};

/* Prepends a header. *data and *length are set to the result, valid until the next call. Returns false if
 * out of memory. */
bool wr_body_prepend(struct body *body, const char *header, const char **data, size_t *length);

/* Compresses with gzip. *data and *length are set to the result, valid until the next call. Returns false if
 * out of memory. */
bool wr_body_compress(struct body *body, const char **data, size_t *length);

void wr_body_fini(struct body *body);

#endif
