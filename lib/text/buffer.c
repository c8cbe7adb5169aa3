#include "text/buffer.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* From LARGE on, malloc uses a mapping of its own, whose pages take memory only once they are written. Sizes
 * between MEDIUM and LARGE are skipped, as they would fragment the heap. */
enum { MEDIUM = 32 * 1024, LARGE = 256 * 1024 };

void wr_buffer_fini(struct wr_buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct wr_buffer){0};
}

/* Gives up the remaining room: a smaller piece must not be appended after a missing one. */
static bool fail(struct wr_buffer *buffer)
{
    buffer->failed = true;
    buffer->room = buffer->length;
    return false;
}

/* Keeps the room, which the next contents may fit. */
static bool fail_fixed(struct wr_buffer *buffer)
{
    buffer->failed = true;
    buffer->length = buffer->room;
    return false;
}

bool wr_buffer_grow(struct wr_buffer *buffer, size_t more)
{
    if (buffer->fixed)
        return fail_fixed(buffer);
    if (buffer->failed || more > SIZE_MAX / 4)
        return fail(buffer);
    size_t room = buffer->room ? buffer->room : 64;
    while (room - buffer->length < more)
        room = room < MEDIUM || room >= LARGE ? room * 2 : LARGE;
    char *data = realloc(buffer->data, room);
    if (!data)
        return fail(buffer);
    buffer->data = data;
    buffer->room = room;
    return true;
}

void wr_buffer_put(struct wr_buffer *buffer, const void *bytes, size_t length)
{
    if (!length || !wr_buffer_reserve(buffer, length))
        return;
    memcpy(buffer->data + buffer->length, bytes, length);
    buffer->length += length;
}

void wr_buffer_put_text(struct wr_buffer *buffer, const char *text)
{
    wr_buffer_put(buffer, text, strlen(text));
}

void wr_buffer_put_format(struct wr_buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 || !wr_buffer_reserve(buffer, (size_t)length + 1))
        return;
    va_start(arguments, format);
    vsnprintf(buffer->data + buffer->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    buffer->length += (size_t)length;
}

const char *wr_buffer_text(struct wr_buffer *buffer)
{
    if (!wr_buffer_reserve(buffer, 1) || buffer->failed)
        return NULL;
    buffer->data[buffer->length] = '\0';
    return buffer->data;
}

char *wr_buffer_take(struct wr_buffer *buffer)
{
    char *text = (char *)wr_buffer_text(buffer);
    if (text)
        *buffer = (struct wr_buffer){0};
    else
        wr_buffer_fini(buffer);
    return text;
}
