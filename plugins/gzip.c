#include "gzip.h"

#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#include "text/buffer.h"

/* Level 1: lines of metrics are so similar that higher levels gain little. */
bool gzip_text(struct wr_buffer *text)
{
    enum { GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 8 };
    z_stream stream = {0};
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    struct wr_buffer out = {.room = deflateBound(&stream, text->length)};
    out.data = malloc(out.room);
    stream.next_in = (Bytef *)text->data;
    stream.avail_in = (uInt)text->length;
    stream.next_out = (Bytef *)out.data;
    stream.avail_out = (uInt)out.room;
    bool done = out.data && text->length <= UINT32_MAX && deflate(&stream, Z_FINISH) == Z_STREAM_END;
    out.length = stream.total_out;
    deflateEnd(&stream);
    if (!done) {
        free(out.data);
        return false;
    }
    wr_buffer_fini(text);
    *text = out;
    return true;
}
