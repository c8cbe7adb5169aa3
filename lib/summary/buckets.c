#include "summary/buckets.h"

#include <string.h>

#include "text/common.h"
#include "text/crc.h"

/* From 5 ms on the advisory boundaries of durations of
 * https://opentelemetry.io/docs/specs/semconv/http/http-metrics/, and below these the same steps. */
#define TIMES(per_us, us)                                                                                      \
    {                                                                                                          \
        BOUND(1e1, per_us, us), BOUND(2.5e1, per_us, us), BOUND(5e1, per_us, us), BOUND(1e2, per_us, us),      \
            BOUND(2.5e2, per_us, us), BOUND(5e2, per_us, us), BOUND(1e3, per_us, us),                          \
            BOUND(2.5e3, per_us, us), BOUND(5e3, per_us, us), BOUND(1e4, per_us, us),                          \
            BOUND(2.5e4, per_us, us), BOUND(5e4, per_us, us), BOUND(7.5e4, per_us, us),                        \
            BOUND(1e5, per_us, us), BOUND(2.5e5, per_us, us), BOUND(5e5, per_us, us),                          \
            BOUND(7.5e5, per_us, us), BOUND(1e6, per_us, us), BOUND(2.5e6, per_us, us),                        \
            BOUND(5e6, per_us, us), BOUND(7.5e6, per_us, us), BOUND(1e7, per_us, us)                           \
    }
#define BOUND(number, per_us, us) ((number) * (per_us) / (us)) /* of microseconds; exact where it can be */

static const double seconds[] = TIMES(1, 1e6);
static const double milliseconds[] = TIMES(1, 1e3);
static const double microseconds[] = TIMES(1, 1);
static const double nanoseconds[] = TIMES(1e3, 1);
static const double powers[] = {1,    2,    4,    8,     16,    32,    64,     128,    256,    512,    1024,
                                2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576};

static const struct {
    const char *unit;
    const double *bounds;
} times[] = {{"s", seconds}, {"ms", milliseconds}, {"us", microseconds}, {"ns", nanoseconds}};

const double *wr_buckets_of(const weir_series *series, size_t *count)
{
    if (series->buckets) {
        *count = series->bucket_count;
        return series->buckets;
    }
    for (size_t i = 0; series->unit && i < WR_COUNT_OF(times); i++) {
        if (strcmp(series->unit, times[i].unit) != 0)
            continue;
        *count = WR_COUNT_OF(seconds);
        return times[i].bounds;
    }
    *count = WR_COUNT_OF(powers);
    return powers;
}

uint32_t wr_buckets_check(const double *bounds, size_t count)
{
    return wr_crc_add(0, bounds, count * sizeof *bounds);
}
