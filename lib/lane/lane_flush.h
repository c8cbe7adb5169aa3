/* lane_flush: threads of the program wait until a lane has delivered what they added. */
#ifndef WR_LANE_FLUSH_H
#define WR_LANE_FLUSH_H

#include <stdint.h>

#include "lane/lane.h"

struct wr_error;

/* Requests that all samples offered so far be delivered without linger and back-off. Returns the position to
 * wait for. */
uint64_t wr_lane_flush_request(struct wr_lane *lane, int64_t deadline_ns);

/* Waits until that position is reached. Returns 0; WEIR_ERR_SPOOLED if samples before it stay on disk;
 * WEIR_ERR_TIMEOUT if it is not reached by deadline_ns; or the error with which the handler has failed waiting
 * calls since the request. */
int wr_lane_flush_wait(struct wr_lane *lane, uint64_t position, int64_t deadline_ns, struct wr_error *error);

#endif
