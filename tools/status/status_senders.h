/* status_senders: the processes that send to a source, as `weir status` shows them. */
#ifndef STATUS_SENDERS_H
#define STATUS_SENDERS_H

#include <stddef.h>

#include "status/status_page.h"

struct wr_buffer;

/* Appends the senders of the source with that index, and their sum. */
void status_put_senders(struct wr_buffer *out, const struct wr_status_view *view, size_t source);

#endif
