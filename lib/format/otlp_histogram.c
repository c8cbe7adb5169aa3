#include "format/otlp_histogram.h"

#include "format/otlp_writer.h"
#include "summary/buckets.h"
#include "summary/exponential.h"
#include "summary/summary.h"

/* Numbers of fields: opentelemetry/proto/metrics/v1/metrics.proto. */
static const struct wr_otlp_field count_field = {4, "count"}, sum_field = {5, "sum"};

static void put_extremes(const struct wr_otlp_writer *writer, const struct wr_summary *summary, unsigned number)
{
    if (!summary->sketch.count)
        return;
    wr_otlp_put_double(writer, (struct wr_otlp_field){number, "min"}, summary->sketch.min);
    wr_otlp_put_double(writer, (struct wr_otlp_field){number + 1, "max"}, summary->sketch.max);
}

/* No sum of values that may be negative, as the standard wants: it would not only grow. */
void wr_otlp_put_explicit(const struct wr_otlp_writer *writer, const weir_series *series,
                          const struct wr_summary *summary, bool delta)
{
    static const struct wr_otlp_field bucket_counts = {6, "bucketCounts"},
                                      explicit_bounds = {7, "explicitBounds"};
    enum { MIN = 11 };
    size_t bounds;
    const double *upper = wr_buckets_of(series, &bounds);
    bool has_buckets = summary->bucket_count == bounds + 1 &&
                       summary->bounds_check == wr_buckets_check(upper, bounds); /* else declared anew since */
    bool is_negative = (bounds && upper[0] < 0) || (summary->sketch.count && summary->sketch.min < 0);
    wr_otlp_put_fixed64(writer, count_field, delta ? summary->count : summary->total_count);
    if (!is_negative)
        wr_otlp_put_double(writer, sum_field, delta ? summary->sum : summary->total_sum);
    if (has_buckets) {
        wr_otlp_put_fixed64s(writer, bucket_counts, delta ? summary->buckets : summary->total_buckets,
                             bounds + 1);
        wr_otlp_put_doubles(writer, explicit_bounds, upper, bounds);
    }
    if (delta)
        put_extremes(writer, summary, MIN);
}

static void put_buckets(const struct wr_otlp_writer *writer, struct wr_otlp_field field,
                        const struct wr_exponential_buckets *buckets)
{
    static const struct wr_otlp_field offset = {1, "offset"}, bucket_counts = {2, "bucketCounts"};
    if (!buckets->count)
        return;
    size_t begin = wr_otlp_begin(writer, field);
    wr_otlp_put_sint32(writer, offset, buckets->offset);
    wr_otlp_put_varints(writer, bucket_counts, buckets->counts, buckets->count);
    wr_otlp_end(writer, begin);
}

/* zero_threshold is left out: 0, which is what the zero bucket holds. */
void wr_otlp_put_exponential(const struct wr_otlp_writer *writer, const struct wr_summary *summary,
                             const struct wr_exponential *histogram)
{
    static const struct wr_otlp_field scale = {6, "scale"}, zero_count = {7, "zeroCount"},
                                      positive = {8, "positive"}, negative = {9, "negative"};
    enum { MIN = 12 };
    wr_otlp_put_fixed64(writer, count_field, summary->count);
    if (!summary->sketch.count || summary->sketch.min >= 0)
        wr_otlp_put_double(writer, sum_field, summary->sum);
    wr_otlp_put_sint32(writer, scale, histogram->scale);
    wr_otlp_put_fixed64(writer, zero_count, histogram->zero_count);
    put_buckets(writer, positive, &histogram->positive);
    put_buckets(writer, negative, &histogram->negative);
    put_extremes(writer, summary, MIN);
}
