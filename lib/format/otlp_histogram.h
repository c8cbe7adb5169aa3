/* otlp_histogram: what a data point of a histogram says about its distribution: count, sum, smallest, largest
 * and buckets, with explicit or with exponential bounds. */
#ifndef WR_OTLP_HISTOGRAM_H
#define WR_OTLP_HISTOGRAM_H

#include <stdbool.h>

#include <weir/handler.h>

struct wr_exponential;
struct wr_otlp_writer;
struct wr_summary;

/* Fields of HistogramDataPoint. delta: of the interval, not the totals. */
void wr_otlp_put_explicit(const struct wr_otlp_writer *writer, const weir_series *series,
                          const struct wr_summary *summary, bool delta);

/* Fields of ExponentialHistogramDataPoint, of the interval: a summary has the sketch of its interval only. */
void wr_otlp_put_exponential(const struct wr_otlp_writer *writer, const struct wr_summary *summary,
                             const struct wr_exponential *histogram);

#endif
