/* api_range: what requests for values of a time have in common. */
#ifndef WEIR_PLUGINS_COLLECTOR_API_RANGE_H
#define WEIR_PLUGINS_COLLECTOR_API_RANGE_H

#include "api_call.h"
#include "buckets.h"

/* The parameters from and to: by default the last hour. Returns false with the query's problem set. */
bool api_take_times(struct query *query, int64_t *from_ns, int64_t *to_ns);

/* The parameter points. has_percentiles: buckets take more memory, so there are fewer. */
bool api_take_points(struct query *query, size_t series, bool has_percentiles, size_t *points);

/* Sets what a series' buckets have. all: percentiles of each series. */
void api_set_kind(struct buckets_shape *shape, const struct series_info *info, bool all);

/* Appends {"from":...,"to":...,"step":...,"series":[ */
void api_put_shape(struct wr_buffer *out, const struct buckets_shape *shape);

#endif
