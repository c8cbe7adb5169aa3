/* lane_spooler: a second thread of a lane with a spool. It moves samples to disk while the worker is inside the
 * handler, for however long that takes; at other times the worker does it. */
#ifndef WR_LANE_SPOOLER_H
#define WR_LANE_SPOOLER_H

#include "lane/lane.h"

/* Starts the thread, which executes run(lane), if the lane has a spool and the thread does not run. If no
 * thread can be started, samples are moved while the handler waits in the core and between its calls only.
 * [worker, before each open] */
void wr_lane_spooler_start(struct wr_lane *lane, void *(*run)(void *lane));

/* Moves samples until the worker ends or the lane stops; then the thread must return. [spooler] */
void wr_lane_spooler_run(struct wr_lane *lane);

#endif
