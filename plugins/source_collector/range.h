/* range: the values of one series within a time, as points of a chart. */
#ifndef WEIR_PLUGINS_COLLECTOR_RANGE_H
#define WEIR_PLUGINS_COLLECTOR_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buckets;
struct buckets_shape;
struct chunk_point;
struct reader;
struct wr_buffer;

/* Sets start, step and count so that at most `points` buckets have all of [from_ns, to_ns). The step is one
 * that people read, and buckets begin at multiples of it since 1970, so that they stay where they are while the
 * time moves on. */
void range_shape(struct buckets_shape *shape, int64_t from_ns, int64_t to_ns, size_t points);

/* Appends "raw":...,"points":[...]: each value, if there are not more than buckets, else buckets. Returns a
 * code of SQLite. */
int range_put(struct reader *reader, int64_t series, const struct buckets_shape *shape, struct wr_buffer *out);

/* The same of values that the caller has, sorted by time. */
int range_put_points(const struct chunk_point *points, size_t count, const struct buckets_shape *shape,
                     struct wr_buffer *out);

/* Adds all values of a series to buckets. Returns a code of SQLite. */
int range_read(struct reader *reader, int64_t series, struct buckets *buckets);

#endif
