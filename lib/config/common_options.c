#include "config/common_options.h"

#include <stdlib.h>

#include "text/common.h"

#define ROW(name, type, default_text, allowed, help, field)                                                    \
    WEIR_OPTION_ROW(name, type, 0, default_text, allowed, help, struct wr_common_options, field)

static const weir_option rows[] = {
    ROW("delivery", ENUM, "async", "async|sync",
        "sync: a call returns after the handler has delivered the value", delivery),
    ROW("queue", SIZE, "1MiB", "1KiB..1TiB",
        "how much may wait for the handler in memory; a value takes 32 bytes", queue_bytes),
    ROW("overflow", ENUM, "block", "block|drop_newest|drop_oldest", "what happens when the queue is full",
        overflow),
    ROW("block_timeout", DURATION, "1s", "0s..1d",
        "overflow \"block\": how long calls wait for a handler that makes no progress", block_timeout_ns),
    ROW("batch", INT, "5000", "1..1000000", "the most values delivered at once", batch),
    ROW("batch_bytes", SIZE, "1MiB", "1KiB..1GiB", "the most bytes of the queue delivered at once",
        batch_bytes),
    ROW("linger", DURATION, "0s", "0s..1h", "how long a value may wait for others to fill its batch",
        linger_ns),
    ROW("retry_min", DURATION, "500ms", "1ms..1h",
        "the pause after a first failure; it doubles with each further one", retry_min_ns),
    ROW("retry_max", DURATION, "30s", "1ms..1d", "the longest pause between two tries", retry_max_ns),
    ROW("spool", PATH, NULL, NULL,
        "a folder for what the handler does not take in time; kept there over the end of the program", spool),
    ROW("spool_limit", SIZE, "1GiB", "64KiB..16TiB", "how much may be there; then \"overflow\" decides",
        spool_limit),
    ROW("aggregate", DURATION, "0s", "0s..1d",
        "how often the handler gets a summary of each series in place of its values: 10ms or longer; 0s: it "
        "gets the values",
        aggregate_ns),
    ROW("aggregate_series", INT, "100000", "1..10000000",
        "\"aggregate\": of how many series, each part of a summary being one; values of further ones are "
        "dropped",
        aggregate_series),
    ROW("percentiles", LIST, "50,90,99,99.9", "0..100",
        "\"aggregate\": which ones are delivered, above 0 and below 100", percentiles),
    ROW("window", DURATION, "0s", "0s..1d",
        "\"aggregate\": of how long a time percentiles, the smallest and the largest value are; 0s: of the "
        "interval",
        window_ns),
    ROW("parts", LIST, "min,max,last", NULL,
        "\"aggregate\": which of min, max and last are delivered, besides count, sum, buckets and percentiles",
        parts),
    ROW("optional", BOOL, "false", NULL,
        "true: the handler is left out, with a warning, if its type is not installed", optional),
    {0},
};

struct wr_options_table wr_common_options_table(void)
{
    return WR_OPTIONS_TABLE(rows, struct wr_common_options);
}

/* ---- Reserved names ---------------------------------------------------------------------------- */

/* Documented in weir-handler(7) and frozen by the first release with WEIR_ABI 1: later common options are not
 * added. */
static const char *const reserved[] = {
    "type",          "plugin",      "format",      "delivery",         "queue",     "overflow",
    "block_timeout", "batch",       "batch_bytes", "linger",           "retry_min", "retry_max",
    "spool",         "spool_limit", "aggregate",   "aggregate_series", "optional",  "percentiles",
};

const weir_option *wr_common_options_find_clash(const struct wr_options_table *own)
{
    const weir_option *row = NULL;
    for (size_t i = 0; !row && i < WR_COUNT_OF(reserved); i++)
        row = wr_options_find_key(own, reserved[i]);
    return row;
}

bool wr_common_options_select(const struct wr_options_table *own, struct wr_options_table *common)
{
    size_t count = 0;
    *common = wr_common_options_table();
    for (const weir_option *row = rows; row->name; row++)
        count += wr_options_find_key(own, row->name) != NULL;
    if (!count)
        return true;
    weir_option *visible = calloc(WR_COUNT_OF(rows), sizeof *visible);
    if (!visible)
        return false;
    common->rows = visible;
    for (const weir_option *row = rows; row->name; row++)
        if (!wr_options_find_key(own, row->name))
            *visible++ = *row;
    return true;
}

/* ---- Settings -------------------------------------------------------------------------------- */

struct wr_lane_settings wr_common_options_settings(const struct wr_common_options *common_options)
{
    bool sums = common_options->aggregate_ns > 0; /* calls neither wait for it nor for room in its queue */
    return (struct wr_lane_settings){
        .queue_bytes = (uint64_t)common_options->queue_bytes,
        .overflow = sums ? WR_OVERFLOW_BLOCK : (enum wr_overflow)common_options->overflow,
        .block_timeout_ns = common_options->block_timeout_ns,
        .batch = (uint32_t)common_options->batch,
        .batch_bytes = (uint64_t)common_options->batch_bytes,
        .linger_ns = common_options->linger_ns,
        .retry_min_ns = common_options->retry_min_ns,
        .retry_max_ns = common_options->retry_max_ns,
        .sync = common_options->delivery == 1 && !sums,
        .aggregate_ns = common_options->aggregate_ns,
        .aggregate_series = (uint32_t)common_options->aggregate_series,
        .percentiles = (uint32_t)common_options->percentiles.count,
        .spool_limit = common_options->spool ? (uint64_t)common_options->spool_limit : 0,
    };
}
