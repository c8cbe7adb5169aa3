/* format_influx: InfluxDB's line protocol: my_app,route=/x latency=49.403 1795219607576198123 */
#ifndef WR_FORMAT_INFLUX_H
#define WR_FORMAT_INFLUX_H

#include "format/encoder.h"

extern const struct wr_format wr_format_influx;

#endif
