/* buckets: the bounds of a histogram's buckets. */
#ifndef WR_BUCKETS_H
#define WR_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

/* Returns the rising upper bounds of a series' buckets, and sets *count: those that are declared; else, if the
 * unit is one of time (s, ms, us, ns), OpenTelemetry's default for durations, 5 ms to 10 s; else powers of two,
 * 1 to 2^20. Valid as long as the series. There is one more bucket, for what is above the last bound. */
const double *wr_buckets_of(const weir_series *series, size_t *count);

/* Returns a checksum of the bounds: a summary has it, since a histogram's buckets may be declared anew. */
uint32_t wr_buckets_check(const double *bounds, size_t count);

#endif
