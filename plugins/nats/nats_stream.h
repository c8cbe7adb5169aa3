/* nats_stream: finds the stream of the options, or creates it, through JetStream's API. */
#ifndef NATS_STREAM_H
#define NATS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nats_link.h"

/* Checks that the stream exists; with may_create and the option "create", creates it if not. Returns false with
 * RETRY and the reason. */
bool wr_nats_stream_ensure(struct nats_link *link, bool may_create, int64_t timeout_ms, weir_outcome *outcome);

#endif
