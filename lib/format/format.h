/* format: the formats, and how a configuration finds one by name. */
#ifndef WR_FORMAT_H
#define WR_FORMAT_H

#include "format/encoder.h"

extern const struct wr_format wr_format_bai;         /* benchmarkai: {"latency": 49.403}, one line per event */
extern const struct wr_format wr_format_csv;         /* RFC 4180: timestamp,group,name,value,labels */
extern const struct wr_format wr_format_elastic;     /* an action and a document per event, for _bulk */
extern const struct wr_format wr_format_graphite;    /* my_app.latency 49.403 1795219607 */
extern const struct wr_format wr_format_influx;      /* my_app,route=/x latency=49.403 1795219607576198123 */
extern const struct wr_format wr_format_json;        /* one JSON object per sample and line */
extern const void *const wr_format_json_whole;       /* its options for all that its parser reads again */
extern const struct wr_format wr_format_mlbench;     /* one form per sample, for POST to /api/metrics/ */
extern const struct wr_format wr_format_openmetrics; /* OpenMetrics 1.0, the last value of each series */
extern const struct wr_format wr_format_otlp;        /* OpenTelemetry, as protobuf or JSON */
extern const struct wr_format wr_format_prometheus;  /* text format 0.0.4, the last value of each series */
extern const struct wr_format wr_format_statsd;      /* my_app.latency:49.403|g */
extern const struct wr_format wr_format_text;        /* [1795219607.576198][my_app]: latency=49.403 */

/* Returns format number i, in the order in which they are listed to users; NULL after the last. */
const struct wr_format *wr_format_at(size_t i);

/* Returns the format with this name, or NULL. */
const struct wr_format *wr_format_find(const char *name);

#endif
