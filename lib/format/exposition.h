/* exposition: samples as a document in one of Prometheus' formats. Used by the formats and by the plugin
 * prometheus, which has its own copy of the code. */
#ifndef WR_EXPOSITION_H
#define WR_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/series_text.h"

struct wr_buffer;

enum wr_exposition_format { WR_EXPOSITION_TEXT, WR_EXPOSITION_OPENMETRICS };

/* A gauge that the handler type prometheus writes itself: no family gets this name. */
#define WR_EXPOSITION_OWN "weir_unscraped_processes"

#define WR_EXPOSITION_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define WR_EXPOSITION_OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* A series with its value. A document has one of each series. */
struct wr_exposed {
    const weir_series *series;
    struct wr_series_text text;
    double value;
    int64_t time_ns;    /* of the sample */
    int64_t seen_ns;    /* for the owner */
    int64_t created_ns; /* since when a total is counted: OpenMetrics has it as _created; 0: it has not */
};

/* Sorts series: families together, in them groups and names, in these label sets, and in these the parts of a
 * histogram. */
void wr_exposition_sort(struct wr_exposed *first, size_t count);

/* Writes sorted series. out->failed: out of memory. Returns how many families have names or label sets that
 * became equal, and are kept apart by words or labels: their texts remember it, so that a series keeps its name
 * and labels in documents without the others. */
unsigned wr_exposition_write(struct wr_buffer *out, struct wr_exposed *first, size_t count,
                             enum wr_exposition_format format);

#endif
