/* format_mlbench: MLBench's metrics, a form for each sample: run_id=7&name=latency&cumulative=False&date=... */
#ifndef WR_FORMAT_MLBENCH_H
#define WR_FORMAT_MLBENCH_H

#include "format/encoder.h"

extern const struct wr_format wr_format_mlbench;

#endif
