#include "gzip.h"

#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#include "text/buffer.h"

bool gzip_page(struct wr_buffer *page)
{
    enum { GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 8 };
    z_stream stream = {0};
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    struct wr_buffer out = {.room = deflateBound(&stream, page->length)};
    out.data = malloc(out.room);
    stream.next_in = (Bytef *)page->data;
    stream.avail_in = (uInt)page->length;
    stream.next_out = (Bytef *)out.data;
    stream.avail_out = (uInt)out.room;
    bool done = out.data && page->length <= UINT32_MAX && deflate(&stream, Z_FINISH) == Z_STREAM_END;
    out.length = stream.total_out;
    deflateEnd(&stream);
    if (!done) {
        free(out.data);
        return false;
    }
    wr_buffer_fini(page);
    *page = out;
    return true;
}
