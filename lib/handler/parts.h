/* parts: a batch with summaries as one of plain values, for handler types that take no summaries.
 *
 * A counter becomes NAME, the running total; a gauge NAME, the level. A histogram becomes NAME.count, NAME.sum
 * and, with a label le, NAME.bucket, which are running totals; also NAME.min, NAME.max and the percentiles of
 * the interval, such as NAME.p99_9, if there were values. A value becomes NAME.count, .sum, .min, .max, .last
 * and the percentiles, all of the interval. A format may want what came in the interval in place of totals, or
 * no buckets. Smallest, largest and percentiles may be those of a longer time: see window.h.
 *
 * For a format with the names of the server StatsD, a counter becomes NAME.rate and NAME.count, and histograms
 * and values NAME.count, .count_ps, .sum, .mean, .lower, .upper, .median, .sum_squares, .std and the
 * percentiles, like NAME.count_90, .upper_90, .sum_90, .sum_squares_90 and .mean_90, of the interval, or the
 * window where that is used above, and for the sums of squares, .std and the percentiles.
 *
 * The parts of a summary are one event, but each bucket is an event of its own, as an event has one label set.
 * The series of the parts are not counted against settings.max_series.
 *
 * Parts have identities of their own: an origin of the handler's instance, and numbers without a gap. A part
 * has the same number in each attempt of the instance, and no other part has it. [worker] */
#ifndef WR_PARTS_H
#define WR_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/handler.h>

#include "registry/registry.h"
#include "segment/origin.h"
#include "handler/window.h"
#include "summary/summary.h"

struct wr_error;

enum { WR_PERCENTILES = 16, WR_PERCENTILE_SUFFIX = 16 };

struct wr_percentiles {
    size_t count;
    double quantiles[WR_PERCENTILES];                    /* 0..1 */
    char suffixes[WR_PERCENTILES][WR_PERCENTILE_SUFFIX]; /* ".p99_9" */
};

/* Reads numbers above 0 and below 100. Returns false with the error's message: what is wrong with which. */
bool wr_percentiles_read(struct wr_percentiles *percentiles, const weir_list *texts, struct wr_error *error);

/* Reads which of min, max and last are wanted, and sets the WR_PART_* of the others. Returns false with the
 * error's message: what is wrong. */
bool wr_parts_read_left_out(uint32_t *left_out, const weir_list *wanted, struct wr_error *error);

/* How summaries are taken apart. */
struct wr_parts_rules {
    uint32_t wanted; /* WR_WANTS_* of the format */
    struct wr_percentiles percentiles;
    uint32_t left_out; /* WR_PART_* */
    int64_t window_ns; /* see struct wr_windows */
};

/* A sample of the original. */
struct wr_parts_end {
    uint32_t end;     /* where its parts end */
    uint64_t values;  /* how many values it is of */
    int64_t since_ns; /* of a summary: since when its totals are counted; else 0 */
};

/* All zeros: empty. */
struct wr_parts {
    weir_batch batch; /* what a handler gets */
    weir_sample *samples;
    uint32_t count, room;
    struct wr_parts_end *ends; /* for each sample of the original */
    uint32_t ends_room, originals;
    uint32_t done;        /* parts */
    uint32_t rejected;    /* samples of the original, some of whose parts were rejected */
    uint32_t rejected_to; /* the samples before this have been looked at for that */
    struct wr_summary_room *reading;
    struct wr_windows windows;

    char origin[WR_ORIGIN_TEXT]; /* of the parts; "": none yet */
    uint64_t sequence;           /* the number of the batch's first part */
    uint64_t used;               /* numbers below this were given to parts */
    struct wr_sample_id first;   /* the first sample of the original */
    bool is_begun;               /* some parts of it are done */

    const struct weir_metric *apart; /* one whose parts do not begin with its name; NULL: none so far */
    char why[256];                   /* the reason why the sample after the originals has no parts */
};

void wr_parts_fini(struct wr_parts *parts);

enum wr_parts_result {
    WR_PARTS_MADE,
    WR_PARTS_NO_MEMORY,
    WR_PARTS_REFUSED, /* the first sample is a summary that has no parts: `why` of the parts is the reason */
};

/* Makes the parts of the samples, up to a summary that has none: one that cannot be read, or whose parts could
 * not have their names or labels. first: identity of the first one. If that was begun before, the parts of it
 * that are done are left out. */
enum wr_parts_result wr_parts_make(struct wr_parts *parts, const weir_batch *batch,
                                   const struct wr_sample_id *first, struct wr_registry *registry,
                                   const struct wr_parts_rules *rules);

/* What the handler gets next; valid until the next call of make. count 0: it has done all. A summary that is
 * begun and rejected is alone. */
weir_batch wr_parts_rest(const struct wr_parts *parts);

/* Whether samples of the original are complete and rejected: then those behind them are for another outcome,
 * whose last samples are taken for the rejected ones. */
bool wr_parts_has_rejected(const struct wr_parts *parts);

/* How many values of the original one of its parts is: all that a summary is of for its last part, and 0 for
 * the others. So what was done of the parts is in values what convert makes of it. part: its index. */
uint64_t wr_parts_values(const struct wr_parts *parts, uint32_t part);

/* Since when the totals are counted of the summary that this part belongs to; 0: it is a sample of its own. */
int64_t wr_parts_since(const struct wr_parts *parts, uint32_t part);

/* The handler has done so many of these, of which the last ones were rejected. */
void wr_parts_advance(struct wr_parts *parts, uint32_t done, uint32_t rejected);

/* Sets `done` and `rejected` to samples of the original. A summary is rejected as a whole. */
void wr_parts_convert(struct wr_parts *parts, weir_outcome *outcome);

#endif
