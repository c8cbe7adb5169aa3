/* lane_host: what a handler asks of its lane, through weir_host. */
#ifndef WR_LANE_HOST_H
#define WR_LANE_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "lane/lane.h"
#include "segment/queue.h"

struct wr_label_set;

/* ---- [any thread] ---------------------------------------------------------------------------- */

/* Adds to the handler's own counter of that name, of which the first bytes are kept. Counts nothing if the lane
 * has no counter left. */
void wr_lane_host_count(struct wr_lane *lane, const char *name, uint64_t n);

/* Sets the timer; 0: removes it. */
void wr_lane_host_wake_at(struct wr_lane *lane, int64_t at_ns);

/* Whether the handler is asked to return soon: the lane stops, or the handler is to be replaced. */
bool wr_lane_host_is_stopping(struct wr_lane *lane);

/* How long the handler may still take to stop, at most INT32_MAX, as without a limit; -1: the lane does not
 * stop. */
int64_t wr_lane_host_remaining_ms(struct wr_lane *lane);

/* ---- Thread: worker -------------------------------------------------------------------------- */

/* Waits until deadline_ns, moving samples to the spool meanwhile. Returns false if the handler is asked to
 * return soon. While it waits here the handler is not inside code that a fork could interrupt. */
bool wr_lane_host_wait(struct wr_lane *lane, int64_t deadline_ns);

/* The handler begins a wait of its own during which a fork may happen; and ends it. After a shutdown that did
 * not wait for this thread, end does not return: the libraries it would continue in may be gone. */
void wr_lane_host_begin_waiting(struct wr_lane *lane);
void wr_lane_host_end_waiting(struct wr_lane *lane);

/* Sets *range to queued samples from a position on, at most a batch, which stay queued, with a reference to the
 * segment, and *labels to theirs, with a reference. Returns false if there are none that are certain to be
 * offered: the handler may send them before they are. Caller has initialised *range and *labels. */
bool wr_lane_host_look_ahead(struct wr_lane *lane, uint64_t position, struct wr_range *range,
                             struct wr_label_set **labels);

/* Logs later, by the worker, if a caller is inside emit_now; returns false if the message is to be logged now.
 */
bool wr_lane_host_defer(struct wr_lane *lane, int level, const char *text);

#endif
