#include "summary/buckets.h"

#include <string.h>

#include "text/common.h"
#include "text/crc.h"

/* https://opentelemetry.io/docs/specs/semconv/http/http-metrics/: the advisory boundaries of durations */
#define TIMES(unit)                                                                                            \
    {                                                                                                          \
        0.005 * (unit), 0.01 * (unit), 0.025 * (unit), 0.05 * (unit), 0.075 * (unit), 0.1 * (unit),            \
            0.25 * (unit), 0.5 * (unit), 0.75 * (unit), 1 * (unit), 2.5 * (unit), 5 * (unit), 7.5 * (unit),    \
            10 * (unit)                                                                                        \
    }

static const double seconds[] = TIMES(1.0);
static const double milliseconds[] = TIMES(1e3);
static const double microseconds[] = TIMES(1e6);
static const double nanoseconds[] = TIMES(1e9);
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
