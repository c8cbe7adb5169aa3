#include "post_body.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    STEP = 16 * 1024,
    GZIP_WINDOW = 15 + 16,
    RATIO_MOST = 200,     /* of decompressed bytes to received ones ... */
    RATIO_FROM = 1 << 20, /* ... from so many on */
};

bool post_body_init(struct post_body *body, struct body_limits *limits, bool is_gzip)
{
    *body = (struct post_body){.limits = limits};
    if (!is_gzip)
        return true;
    body->inflater = calloc(1, sizeof *body->inflater);
    if (body->inflater && inflateInit2(body->inflater, GZIP_WINDOW) == Z_OK)
        return true;
    free(body->inflater);
    body->inflater = NULL;
    return false;
}

static void release(struct post_body *body)
{
    free(body->data);
    body->limits->used -= body->room;
    body->data = NULL;
    body->length = body->room = 0;
}

void post_body_fini(struct post_body *body)
{
    release(body);
    if (body->inflater)
        inflateEnd(body->inflater);
    free(body->inflater);
    body->inflater = NULL;
}

static void fail(struct post_body *body, enum body_fault fault)
{
    body->fault = fault;
    release(body);
}

/* Returns false with the fault set. */
static bool reserve(struct post_body *body, size_t more)
{
    struct body_limits *limits = body->limits;
    size_t room = body->room ? body->room : STEP;
    if (more > limits->each - body->length) {
        fail(body, BODY_TOO_LONG);
        return false;
    }
    while (room < body->length + more)
        room *= 2;
    if (room > limits->each) /* which is at most what all may have */
        room = limits->each;
    if (room <= body->room)
        return true;
    char *data = room - body->room <= limits->memory - limits->used ? realloc(body->data, room) : NULL;
    if (!data) {
        fail(body, BODY_NO_ROOM);
        return false;
    }
    limits->used += room - body->room;
    body->data = data;
    body->room = room;
    return true;
}

static bool append(struct post_body *body, const void *data, size_t length)
{
    if (!reserve(body, length))
        return false;
    memcpy(body->data + body->length, data, length);
    body->length += length;
    return true;
}

static bool is_bomb(const struct post_body *body)
{
    return body->length > RATIO_FROM && body->length / RATIO_MOST > body->received;
}

/* Returns false at the end of the input, or with the fault set. */
static bool inflate_step(struct post_body *body)
{
    Bytef out[STEP];
    z_stream *inflater = body->inflater;
    inflater->next_out = out;
    inflater->avail_out = sizeof out;
    int result = inflate(inflater, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        fail(body, BODY_BROKEN);
        return false;
    }
    if (!append(body, out, sizeof out - inflater->avail_out))
        return false;
    if (is_bomb(body)) {
        fail(body, BODY_TOO_LONG);
        return false;
    }
    body->is_ended = result == Z_STREAM_END;
    if (body->is_ended && inflater->avail_in)
        inflateReset(inflater); /* a further member follows */
    return inflater->avail_in || !inflater->avail_out;
}

void post_body_put(struct post_body *body, const char *data, size_t length)
{
    body->received += length;
    if (body->fault || !length)
        return;
    if (!body->inflater) {
        append(body, data, length);
        return;
    }
    if (body->is_ended)
        inflateReset(body->inflater);
    body->inflater->next_in = (Bytef *)(uintptr_t)data;
    body->inflater->avail_in = (uInt)length;
    while (inflate_step(body)) {
    }
}

void post_body_end(struct post_body *body)
{
    if (!body->fault && body->inflater && !body->is_ended)
        fail(body, BODY_BROKEN);
}
