/* buckets: what the values of one series amount to, in buckets of equal width. Values come in pieces; those of
 * running totals in the order of their times. */
#ifndef WEIR_PLUGINS_COLLECTOR_BUCKETS_H
#define WEIR_PLUGINS_COLLECTOR_BUCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../store/chunk.h"

struct wr_buffer;
struct wr_sketch;

/* A bucket. All zeros: empty. */
struct bucket {
    uint64_t count, finite;
    double sum, min, max, last; /* of the finite ones, if there are any */
    double increase;
    /* of the value `last`: the later one stays, of equal times that of the higher rank */
    int64_t last_ns, last_rank;
};

/* What is measured, and how. */
struct buckets_shape {
    int64_t start_ns, step_ns;
    size_t count;
    bool is_cumulative;   /* the values are running totals */
    bool has_increase;    /* these, and the increments of counters */
    bool has_percentiles; /* each bucket has a sketch */
};

struct buckets {
    struct buckets_shape shape;
    struct bucket *all;
    struct wr_sketch *sketches; /* NULL: none */
    double previous;            /* the last value of a running total; NaN: none */
    bool has_failed;            /* out of memory */
};

/* Returns false if out of memory. Call buckets_fini in any case. */
bool buckets_init(struct buckets *buckets, const struct buckets_shape *shape);
void buckets_fini(struct buckets *buckets);

/* Whether the values of [first_ns, last_ns] can be added by what is known of them, without knowing each:
 * has_rise: of a running total, first and rise are known. */
bool buckets_take_totals(const struct buckets *buckets, int64_t first_ns, int64_t last_ns, bool has_rise);

/* Adds such values. rank: of equal times the one with the higher rank is the later one. */
void buckets_add_totals(struct buckets *buckets, const struct chunk_totals *totals, int64_t first_ns,
                        int64_t last_ns, int64_t rank);

/* Adds values; those outside the buckets only show where a running total has been. */
void buckets_add(struct buckets *buckets, const struct chunk_point *points, size_t count, int64_t rank);

/* Appends a bucket as JSON; index: of the bucket. */
void buckets_put(const struct buckets *buckets, size_t index, struct wr_buffer *out);

/* Appends a value as JSON of a bucket of its own, at its own time. It must be within the buckets. */
void buckets_put_point(struct buckets *buckets, const struct chunk_point *point, struct wr_buffer *out);

#endif
