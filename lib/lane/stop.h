/* stop: a lane comes to its end. [any thread] */
#ifndef WR_STOP_H
#define WR_STOP_H

#include <stdint.h>

#include "lane/lane.h"

/* Asks the worker to come to an end: to deliver what is there, at most until deadline_ns; what is left is
 * dropped for `reason`, or, where there is a spool, goes to disk. */
void wr_stop_request(struct wr_lane *lane, enum weir_drop reason, int64_t deadline_ns);

/* Waits for that end; past deadline_ns it is declared, and the worker, wherever it is, abandoned. One that is
 * inside the handler's code gets a quarter of a second more to come out of it. */
void wr_stop_wait(struct wr_lane *lane, int64_t deadline_ns);

#endif
