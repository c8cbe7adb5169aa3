/* common_options: the options that every handler has. */
#ifndef WR_COMMON_OPTIONS_H
#define WR_COMMON_OPTIONS_H

#include <stdbool.h>
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
    bool optional;
    int64_t aggregate_ns; /* 0: off */
    int64_t aggregate_series;
    weir_list percentiles;
    int64_t window_ns; /* 0: the interval */
    weir_list parts;
};

/* The table. "format" is not in it, since it may be an object. */
struct wr_options_table wr_common_options_table(void);

/* One of a type's options whose key in a configuration is reserved, which no type may have; NULL: none. The
 * list is frozen with WEIR_ABI: plugins built for that number keep loading, so a common option of another name
 * that is added later is not in it. */
const weir_option *wr_common_options_find_clash(const struct wr_options_table *own);

/* The common options that handlers of a type have: all but those that the type's own options hide, by having
 * the same name up to the first dot. The rows may be allocated, then they are never freed. Returns false if out
 * of memory. */
bool wr_common_options_select(const struct wr_options_table *own, struct wr_options_table *common);

/* What they mean to a lane. */
struct wr_lane_settings wr_common_options_settings(const struct wr_common_options *common_options);

#endif
