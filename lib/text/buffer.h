/* buffer: a growing array of bytes. Not thread-safe.
 *
 * If out of memory, a buffer keeps its contents, sets `failed` and accepts nothing more, so callers check for
 * failure once, at the end. */
#ifndef WR_BUFFER_H
#define WR_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct wr_buffer {
    char *data;
    size_t length, room;
    bool failed;
    bool fixed; /* it must not allocate: where it would, it fails as if out of memory */
};

/* All zeros: empty. */
void wr_buffer_fini(struct wr_buffer *buffer);

/* Makes room for `more` bytes after the end. Returns false if out of memory. */
bool wr_buffer_grow(struct wr_buffer *buffer, size_t more);

void wr_buffer_put(struct wr_buffer *buffer, const void *bytes, size_t length);
void wr_buffer_put_text(struct wr_buffer *buffer, const char *text);
void wr_buffer_put_format(struct wr_buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Returns the bytes with a NUL appended, which is not part of length. Borrowed. NULL if out of memory, now or
 * before. */
const char *wr_buffer_text(struct wr_buffer *buffer);

/* The same, but the caller frees the text. The buffer is empty afterwards, in any case. */
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
