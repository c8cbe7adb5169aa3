/* stream: a group with fixed labels, as programs ask for it. */
#ifndef WR_STREAM_H
#define WR_STREAM_H

#include "registry/registry.h"

struct wr_error;

/* [any thread] As weir_get_stream_labeled: never NULL; error tells why it is one that refuses. */
struct weir_stream *wr_stream_get(struct wr_registry *registry, const char *group, const weir_label *labels,
                                  size_t count, struct wr_error *error);

#endif
