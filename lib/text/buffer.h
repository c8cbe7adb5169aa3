/* buffer: bytes that grow. Not for sharing between threads.
 *
 * Without memory a buffer keeps what it has, remembers that it failed, and takes nothing more: callers check
 * once, at the end. */
#ifndef WR_BUFFER_H
#define WR_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct wr_buffer {
    char *data;
    size_t length, room;
    bool failed;
};

/* A buffer of all zeros is empty and ready. */
void wr_buffer_fini(struct wr_buffer *buffer);

/* Makes room for more bytes behind the end; false without memory. */
bool wr_buffer_grow(struct wr_buffer *buffer, size_t more);

void wr_buffer_put(struct wr_buffer *buffer, const void *bytes, size_t length);
void wr_buffer_put_text(struct wr_buffer *buffer, const char *text);
void wr_buffer_put_format(struct wr_buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The bytes as text, with a NUL behind them that does not count; NULL without memory. Borrowed. */
const char *wr_buffer_text(struct wr_buffer *buffer);

/* The same, and the caller frees it; the buffer is empty then. NULL without memory, the buffer being emptied
 * all the same. */
char *wr_buffer_take(struct wr_buffer *buffer);

static inline void wr_buffer_clear(struct wr_buffer *buffer)
{
    buffer->length = 0;
    buffer->failed = false;
}

static inline bool wr_buffer_reserve(struct wr_buffer *buffer, size_t more)
{
    return buffer->room - buffer->length >= more || wr_buffer_grow(buffer, more);
}

static inline void wr_buffer_put_char(struct wr_buffer *buffer, char c)
{
    if (wr_buffer_reserve(buffer, 1))
        buffer->data[buffer->length++] = c;
}

#endif
