#include "summary/summary.h"

#include <string.h>

#include <weir/types.h>

#include "summary/bytes.h"
#include "text/buffer.h"
#include "text/error.h"

enum { SUMMARY_VERSION = 1 };

/* ---- Base64 (RFC 4648, section 4, without padding) -------------------------------------------- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static size_t to_text(const unsigned char *bytes, size_t length, char *text)
{
    char *out = text;
    for (size_t i = 0; i < length; i += 3) {
        size_t rest = length - i;
        uint32_t bits = (uint32_t)bytes[i] << 16 | (rest > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                        (rest > 2 ? bytes[i + 2] : 0);
        *out++ = digits[bits >> 18];
        *out++ = digits[bits >> 12 & 63];
        if (rest > 1)
            *out++ = digits[bits >> 6 & 63];
        if (rest > 2)
            *out++ = digits[bits & 63];
    }
    *out = '\0';
    return (size_t)(out - text);
}

/* Returns -1 if it is no digit. */
static int value_of(char digit)
{
    if (digit >= 'A' && digit <= 'Z')
        return digit - 'A';
    if (digit >= 'a' && digit <= 'z')
        return digit - 'a' + 26;
    if (digit >= '0' && digit <= '9')
        return digit - '0' + 52;
    return digit == '+' ? 62 : digit == '/' ? 63 : -1;
}

/* Returns the number of bytes; SIZE_MAX: it is not base64, or too long. */
static size_t from_text(const char *text, unsigned char *bytes)
{
    uint32_t bits = 0;
    unsigned held = 0;
    size_t length = 0;
    for (; *text; text++) {
        int digit = value_of(*text);
        if (digit < 0)
            return SIZE_MAX;
        bits = bits << 6 | (uint32_t)digit;
        held += 6;
        if (held < 8)
            continue;
        if (length == WR_SUMMARY_BYTES)
            return SIZE_MAX;
        held -= 8;
        bytes[length++] = (unsigned char)(bits >> held);
    }
    return length;
}

/* ---- Writing --------------------------------------------------------------------------------- */

size_t wr_summary_write(const struct wr_summary *summary, struct wr_buffer *scratch, char *text)
{
    wr_buffer_clear(scratch);
    wr_bytes_put_number(scratch, SUMMARY_VERSION);
    wr_bytes_put_number(scratch, (uint64_t)summary->kind);
    wr_bytes_put_number(scratch, (uint64_t)summary->start_ns);
    wr_bytes_put_number(scratch, (uint64_t)summary->end_ns);
    wr_bytes_put_number(scratch, (uint64_t)summary->since_ns);
    wr_bytes_put_number(scratch, summary->count);
    wr_bytes_put_double(scratch, summary->sum);
    wr_bytes_put_double(scratch, summary->last);
    wr_bytes_put_number(scratch, summary->total_count);
    wr_bytes_put_double(scratch, summary->total_sum);
    wr_bytes_put_number(scratch, summary->bucket_count);
    wr_bytes_put_number(scratch, summary->bounds_check);
    for (size_t i = 0; i < summary->bucket_count; i++) {
        wr_bytes_put_number(scratch, summary->buckets[i]);
        wr_bytes_put_number(scratch, summary->total_buckets[i]);
    }
    wr_sketch_encode(&summary->sketch, scratch);
    return to_text((const unsigned char *)scratch->data, scratch->length, text);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void get_numbers(struct wr_summary *summary, struct wr_bytes *bytes)
{
    if (wr_bytes_get_number(bytes) != SUMMARY_VERSION)
        wr_bytes_refuse(bytes, "its version is not 1");
    uint64_t kind = wr_bytes_get_number(bytes);
    if (kind > WEIR_HISTOGRAM)
        wr_bytes_refuse(bytes, "an unknown instrument");
    summary->kind = (int)(kind & 3);
    summary->start_ns = (int64_t)wr_bytes_get_number(bytes);
    summary->end_ns = (int64_t)wr_bytes_get_number(bytes);
    summary->since_ns = (int64_t)wr_bytes_get_number(bytes);
    summary->count = wr_bytes_get_number(bytes);
    summary->sum = wr_bytes_get_double(bytes);
    summary->last = wr_bytes_get_double(bytes);
    summary->total_count = wr_bytes_get_number(bytes);
    summary->total_sum = wr_bytes_get_double(bytes);
    summary->bucket_count = wr_bytes_get_number(bytes);
    if (summary->bucket_count > WR_BUCKETS_MOST)
        wr_bytes_refuse(bytes, "too many buckets");
    summary->bounds_check = (uint32_t)wr_bytes_get_number(bytes);
}

bool wr_summary_read(struct wr_summary *summary, struct wr_summary_room *room, const char *text,
                     struct wr_error *error)
{
    return wr_summary_read_into(summary, room, NULL, text, error);
}

bool wr_summary_read_into(struct wr_summary *summary, struct wr_summary_room *room, struct wr_slab *slab,
                          const char *text, struct wr_error *error)
{
    size_t length = from_text(text, room->bytes);
    *summary = (struct wr_summary){
        .buckets = room->buckets, .total_buckets = room->total_buckets, .sketch.slab = slab};
    if (length == SIZE_MAX)
        return wr_error_set(error, WEIR_ERR_ARGUMENT, "summary: it is not base64, or too long"), false;
    struct wr_bytes bytes = {room->bytes, room->bytes + length, NULL};
    get_numbers(summary, &bytes);
    for (size_t i = 0; !bytes.wrong && i < summary->bucket_count; i++) {
        room->buckets[i] = wr_bytes_get_number(&bytes);
        room->total_buckets[i] = wr_bytes_get_number(&bytes);
    }
    if (!bytes.wrong)
        return wr_sketch_decode(&summary->sketch, bytes.at, (size_t)(bytes.end - bytes.at), error);
    return wr_error_refuse(error, WEIR_ERR_ARGUMENT, "summary, byte %zu: %s", (size_t)(bytes.at - room->bytes),
                           bytes.wrong);
}
