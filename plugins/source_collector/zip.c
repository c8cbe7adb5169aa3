#include "zip.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { VERSION_NEEDED = 20, MADE_BY_UNIX = 3 << 8 | VERSION_NEEDED, DEFLATED = 8, UTF8_NAMES = 1 << 11 };
enum { DATE_1980 = 1 << 5 | 1 }; /* the first of January: times are in the files */
static const uint32_t mode_0600 = (uint32_t)0100600 << 16;

static void put(struct wr_buffer *buffer, uint32_t number, int bytes)
{
    for (; bytes > 0; bytes--, number >>= 8)
        wr_buffer_put_char(buffer, (char)(number & 0xff));
}

/* What a file's own header and its entry in the directory share. */
static void put_common(struct wr_buffer *buffer, uint32_t crc, size_t packed, size_t length, size_t name_length)
{
    put(buffer, VERSION_NEEDED, 2);
    put(buffer, UTF8_NAMES, 2);
    put(buffer, DEFLATED, 2);
    put(buffer, 0, 2);
    put(buffer, DATE_1980, 2);
    put(buffer, crc, 4);
    put(buffer, (uint32_t)packed, 4);
    put(buffer, (uint32_t)length, 4);
    put(buffer, (uint32_t)name_length, 2);
    put(buffer, 0, 2);
}

static void put_entry(struct zip *zip, const char *name, uint32_t crc, size_t packed, size_t length,
                      size_t offset)
{
    size_t name_length = strlen(name);
    put(&zip->directory, 0x02014b50, 4);
    put(&zip->directory, MADE_BY_UNIX, 2);
    put_common(&zip->directory, crc, packed, length, name_length);
    put(&zip->directory, 0, 2 + 2 + 2);
    put(&zip->directory, mode_0600, 4);
    put(&zip->directory, (uint32_t)offset, 4);
    wr_buffer_put(&zip->directory, name, name_length);
}

/* Returns the deflated bytes, which the caller frees; NULL: out of memory. */
static uint8_t *pack(const void *bytes, size_t length, size_t *packed)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    size_t room = deflateBound(&stream, length);
    uint8_t *out = malloc(room);
    stream.next_in = (uint8_t *)(uintptr_t)bytes; /* it is not changed */
    stream.avail_in = (uInt)length;
    stream.next_out = out;
    stream.avail_out = (uInt)room;
    bool is_packed = out && deflate(&stream, Z_FINISH) == Z_STREAM_END;
    *packed = stream.total_out;
    deflateEnd(&stream);
    if (is_packed)
        return out;
    free(out);
    return NULL;
}

void zip_add(struct zip *zip, const char *name, const void *bytes, size_t length)
{
    size_t packed, offset = zip->data.length;
    uint8_t *data = length < UINT32_MAX / 2 ? pack(bytes, length, &packed) : NULL;
    if (!data || offset > UINT32_MAX / 2 || zip->count == UINT16_MAX) {
        free(data);
        zip->has_failed = true;
        return;
    }
    uint32_t crc = (uint32_t)crc32(0, bytes, (uInt)length);
    put(&zip->data, 0x04034b50, 4);
    put_common(&zip->data, crc, packed, length, strlen(name));
    wr_buffer_put_text(&zip->data, name);
    wr_buffer_put(&zip->data, data, packed);
    put_entry(zip, name, crc, packed, length, offset);
    zip->count++;
    free(data);
}

bool zip_finish(struct zip *zip)
{
    size_t offset = zip->data.length, length = zip->directory.length;
    wr_buffer_put(&zip->data, zip->directory.data, length);
    put(&zip->data, 0x06054b50, 4);
    put(&zip->data, 0, 4);
    put(&zip->data, zip->count, 2);
    put(&zip->data, zip->count, 2);
    put(&zip->data, (uint32_t)length, 4);
    put(&zip->data, (uint32_t)offset, 4);
    put(&zip->data, 0, 2);
    return !zip->has_failed && !zip->data.failed && !zip->directory.failed;
}

void zip_fini(struct zip *zip)
{
    wr_buffer_fini(&zip->data);
    wr_buffer_fini(&zip->directory);
}
