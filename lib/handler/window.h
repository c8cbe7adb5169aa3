/* window: the values of each series in the intervals of a longer time, for the parts of summaries that do not
 * add up: smallest, largest and percentiles. [worker]
 *
 * The time is that of the summaries, not of a clock. Those of another origin begin anew. A window is renewed in
 * steps of a quarter of it: what it covers is the window, and at most a quarter more. */
#ifndef WR_WINDOW_H
#define WR_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/handler.h>

#include "segment/origin.h"
#include "summary/sketch.h"

struct wr_window;

/* All zeros: without a window. */
struct wr_windows {
    int64_t length_ns; /* 0: none */
    struct wr_window *items;
    uint32_t count, room;
    uint32_t *by_series; /* place in items, plus 1 */
    uint32_t by_series_room;
    int64_t swept;            /* the step in which it was looked for those that hold nothing */
    struct wr_sample_id next; /* summaries of its origin before this one were added */
    struct wr_sketch all;     /* what was returned last */
};

/* Frees what was added. */
void wr_windows_fini(struct wr_windows *windows);

/* A summary of a series, with its identity: adds the values of its interval, once however often it is tried,
 * and returns all of the series' window; valid until the next call. Without a window that is `interval`. NULL:
 * out of memory. */
const struct wr_sketch *wr_windows_add(struct wr_windows *windows, const weir_series *series,
                                       const struct wr_sample_id *id, int64_t end_ns,
                                       const struct wr_sketch *interval);

/* The series has ended. */
void wr_windows_forget(struct wr_windows *windows, uint32_t series);

#endif
