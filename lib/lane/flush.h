/* flush: threads of the program's that wait until a lane has delivered what they added. */
#ifndef WR_FLUSH_H
#define WR_FLUSH_H

#include <stdint.h>

#include "lane/lane.h"

struct wr_error;

/* Asks for all that was offered so far to be delivered, without pauses. Answers the position to wait for. */
uint64_t wr_flush_request(struct wr_lane *lane, int64_t deadline_ns);

/* Waits until that position was reached. Answers 0, or the error: WEIR_ERR_SPOOLED when what is before it can
 * only be had on disk, WEIR_ERR_TIMEOUT when it was not reached by deadline_ns, or what the handler told those
 * who wait, since the request. */
int wr_flush_wait(struct wr_lane *lane, uint64_t position, int64_t deadline_ns, struct wr_error *error);

#endif
