/* format_statsd: StatsD's gauges: my_app.latency:49.403|g */
#ifndef WR_FORMAT_STATSD_H
#define WR_FORMAT_STATSD_H

#include "format/encoder.h"

extern const struct wr_format wr_format_statsd;

#endif
