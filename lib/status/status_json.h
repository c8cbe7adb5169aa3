/* status_json: a snapshot as JSON, for `weir status --json` and the service status/1. */
#ifndef WR_STATUS_JSON_H
#define WR_STATUS_JSON_H

#include "status/status_page.h"

struct wr_buffer;

/* Appends the snapshot as one object. */
void wr_status_json_put(struct wr_buffer *out, const struct wr_status_view *view);

/* The name of an enum weir_source_state. */
const char *wr_status_json_source_state(int state);

/* The name of an enum weir_sender_state. */
const char *wr_status_json_sender_state(int64_t state);

/* How many values wait at a sender. In a snapshot between two messages the sender's ledger may be behind what
 * was received: nothing waits. */
uint64_t wr_status_json_waiting(const struct wr_status_sender *sender);

#endif
