/* lane_fork: a lane through fork(2). */
#ifndef WR_LANE_FORK_H
#define WR_LANE_FORK_H

#include <stdbool.h>
#include <stdint.h>

#include "lane/lane.h"

struct wr_instance;

/* Before: keeps the worker out of plugin code and away from the spool, and waits until deadline_ns for it to
 * leave both. */
void wr_lane_fork_prepare(struct wr_lane *lane, int64_t deadline_ns);

/* After, in the parent: the worker may continue. */
void wr_lane_fork_parent(struct wr_lane *lane);

/* After, in the child: closes the spool's descriptors. Returns the handler's instance, or NULL; *torn: its code
 * was being executed. Async-signal-safe; takes no lock. */
struct wr_instance *wr_lane_fork_child(const struct wr_lane *lane, bool *torn);

#endif
