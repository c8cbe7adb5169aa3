/* format_graphite: Graphite's plain text: my_app.latency 49.403 1795219607 */
#ifndef WR_FORMAT_GRAPHITE_H
#define WR_FORMAT_GRAPHITE_H

#include "format/encoder.h"

extern const struct wr_format wr_format_graphite;

#endif
