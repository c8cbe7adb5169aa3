#include "summary/summary.h"

#include <string.h>

#include <weir/types.h>

#include "summary/bytes.h"
#include "text/base64.h"
#include "text/buffer.h"
#include "text/error.h"

enum { SUMMARY_VERSION = 1 };

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
    return wr_base64_encode(scratch->data, scratch->length, false, text);
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
    size_t length = wr_base64_decode(text, strlen(text), false, room->bytes, sizeof room->bytes);
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
