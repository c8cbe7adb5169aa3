/* format_prometheus: Prometheus' text format 0.0.4, a document of the last value of each series. */
#ifndef WR_FORMAT_PROMETHEUS_H
#define WR_FORMAT_PROMETHEUS_H

#include "format/encoder.h"

extern const struct wr_format wr_format_prometheus;

#endif
