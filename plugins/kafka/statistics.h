/* statistics: what librdkafka measures, as counters of the handler and a message to the log. */
#ifndef KAFKA_STATISTICS_H
#define KAFKA_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

/* Totals of a producer at its last report. All zeros: none yet. */
struct statistics {
    int64_t requests, bytes, messages, retries, timeouts, disconnects;
};

/* Reads a report of librdkafka. What it does not have counts as 0. */
void wr_statistics_read(struct statistics *statistics, const weir_host *host, const char *json, size_t length);

#endif
