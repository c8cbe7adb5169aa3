#include "body.h"

#include <stdlib.h>
#include <string.h>

/* Level 1: lines of metrics are so similar that higher levels gain little. */
enum { LEVEL = 1, GZIP_WINDOW = 15 + 16, MEMORY = 8, MAX_BYTES = 1 << 30 };

static bool init_stream(struct body *body)
{
    if (!body->ready)
        body->ready =
            deflateInit2(&body->stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY, Z_DEFAULT_STRATEGY) == Z_OK;
    return body->ready;
}

static bool grow_buffer(struct body *body, size_t bytes)
{
    if (bytes <= body->buffer_bytes)
        return true;
    unsigned char *buffer = realloc(body->buffer, bytes);
    if (!buffer)
        return false;
    body->buffer = buffer;
    body->buffer_bytes = bytes;
    return true;
}

bool wr_body_prepend(struct body *body, const char *header, const char **data, size_t *length)
{
    size_t header_length = strlen(header), bytes = header_length + *length;
    if (!header_length)
        return true;
    if (bytes > body->whole_bytes) {
        char *whole = realloc(body->whole, bytes);
        if (!whole)
            return false;
        body->whole = whole;
        body->whole_bytes = bytes;
    }
    memcpy(body->whole, header, header_length);
    memcpy(body->whole + header_length, *data, *length);
    *data = body->whole;
    *length = bytes;
    return true;
}

bool wr_body_compress(struct body *body, const char **data, size_t *length)
{
    if (*length > MAX_BYTES || !init_stream(body) || !grow_buffer(body, deflateBound(&body->stream, *length)))
        return false;
    z_stream *stream = &body->stream;
    stream->next_in = (unsigned char *)*data;
    stream->avail_in = (unsigned)*length;
    stream->next_out = body->buffer;
    stream->avail_out = (unsigned)body->buffer_bytes;
    bool done = deflate(stream, Z_FINISH) == Z_STREAM_END;
    *data = (const char *)body->buffer;
    *length = body->buffer_bytes - stream->avail_out;
    deflateReset(stream);
    return done;
}

void wr_body_fini(struct body *body)
{
    if (body->ready)
        deflateEnd(&body->stream);
    free(body->buffer);
    free(body->whole);
    *body = (struct body){0};
}
