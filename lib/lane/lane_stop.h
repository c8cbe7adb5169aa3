/* lane_stop: a lane comes to its end. [any thread, without locks]
 *
 * A shutdown calls, each for all lanes: request, await, save, wait, finish. */
#ifndef WR_LANE_STOP_H
#define WR_LANE_STOP_H

#include <stdint.h>

#include "lane/lane.h"

/* Has the worker deliver what there is until deadline_ns, and end. What is left then is dropped for `reason`,
 * or goes to the spool if there is one. */
void wr_lane_stop_request(struct wr_lane *lane, enum weir_drop reason, int64_t deadline_ns);

/* Waits until the worker has ended, or deadline_ns, and then until limit_ns for what is left to be on disk, if
 * the worker writes it or another thread is using the disk; if the worker does not return from its handler, the
 * calling thread writes. Returns at once for a lane without a spool. */
void wr_lane_stop_save(struct wr_lane *lane, int64_t deadline_ns, int64_t limit_ns);

/* Waits until the worker has ended, or deadline_ns; then the lane's end is declared and the worker is
 * abandoned. A worker inside plugin code gets 250 ms more to leave it. Messages that other threads are logging
 * are waited for as long as logging_ns. */
void wr_lane_stop_wait(struct wr_lane *lane, int64_t deadline_ns, int64_t logging_ns);

/* Waits until the worker has ended, or until_ns; then logs what the lane is still waited for, up to
 * deadline_ns. */
void wr_lane_stop_await(struct wr_lane *lane, int64_t until_ns, int64_t deadline_ns);

/* Logs the total of what was dropped, and releases what is on disk to other processes. The lane must have come
 * to its end. */
void wr_lane_stop_finish(struct wr_lane *lane);

#endif
