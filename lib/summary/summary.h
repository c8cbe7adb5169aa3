/* summary: what is known of a series' values in one interval. It travels as the payload of one sample of kind
 * WEIR_KIND_SUMMARY, whose value is the number of values: as a text, so that it is stored where metadata is.
 *
 * Each has the values of its interval, which a receiver may merge, and the totals since `since_ns`, which no
 * receiver has to keep: a summary that is sent twice, or lost, makes no total wrong. */
#ifndef WR_SUMMARY_H
#define WR_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "summary/buckets.h"
#include "summary/sketch_code.h"

struct wr_buffer;
struct wr_error;

/* The longest text: thirteen numbers, two for each bucket and the sketch, as base64. */
enum {
    WR_SUMMARY_BYTES = 13 * 10 + 2 * 10 * WR_BUCKETS_MOST + WR_SKETCH_CODE_MAX,
    WR_SUMMARY_TEXT = WR_SUMMARY_BYTES / 3 * 4 + 4
};

struct wr_summary {
    int kind;                 /* enum weir_instrument: as what the values were summed */
    int64_t start_ns, end_ns; /* of the interval: wall clock */
    int64_t since_ns;         /* since when the totals are counted: wall clock */
    uint64_t count;           /* of the interval */
    double sum, last;         /* of the interval; last: the latest value there ever was */
    uint64_t total_count;
    double total_sum;
    size_t bucket_count;     /* 0, or one more than there are bounds */
    uint32_t bounds_check;   /* see wr_buckets_check */
    const uint64_t *buckets; /* of the interval, each with its own values alone */
    const uint64_t *total_buckets;
    struct wr_sketch sketch; /* of the interval: it has min, max and quantiles; empty: not kept */
};

/* Memory that wr_summary_read uses. */
struct wr_summary_room {
    uint64_t buckets[WR_BUCKETS_MOST], total_buckets[WR_BUCKETS_MOST];
    unsigned char bytes[WR_SUMMARY_BYTES];
};

/* Writes the text, of at most WR_SUMMARY_TEXT bytes with its NUL, to `text`; scratch: a buffer with room for
 * WR_SUMMARY_BYTES, so that nothing is allocated. Returns its length. */
size_t wr_summary_write(const struct wr_summary *summary, struct wr_buffer *scratch, char *text);

/* Reads it. The caller then calls wr_sketch_fini; the arrays are in `room`. Returns false with the error set if
 * it is not such a text, or if out of memory. */
bool wr_summary_read(struct wr_summary *summary, struct wr_summary_room *room, const char *text,
                     struct wr_error *error);

/* The same with the sketch in memory of a slab. */
bool wr_summary_read_into(struct wr_summary *summary, struct wr_summary_room *room, struct wr_slab *slab,
                          const char *text, struct wr_error *error);

#endif
