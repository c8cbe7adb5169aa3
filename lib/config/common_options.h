/* common_options: the options that every handler has. */
#ifndef WR_COMMON_OPTIONS_H
#define WR_COMMON_OPTIONS_H

#include <stdint.h>

#include <weir/handler.h>

#include "lane/lane.h"
#include "config/options.h"

struct wr_common_options {
    int64_t delivery; /* 0: async, 1: sync */
    int64_t queue_bytes;
    int64_t overflow; /* enum wr_overflow */
    int64_t block_timeout_ns;
    int64_t batch;
    int64_t batch_bytes;
    int64_t linger_ns;
    int64_t retry_min_ns, retry_max_ns;
    const char *spool; /* NULL: none */
    int64_t spool_limit;
};

/* The table; "format" is not in it, since it may be an object. */
struct wr_options_table wr_common_options_table(void);

/* What they mean to a lane. */
struct wr_lane_settings wr_common_options_settings(const struct wr_common_options *common_options);

#endif
