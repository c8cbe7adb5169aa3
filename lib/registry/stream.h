/* stream: finds and creates the stream of a group and labels. */
#ifndef WR_STREAM_H
#define WR_STREAM_H

#include "registry/registry.h"

struct wr_error;

/* [any thread] As weir_get_stream_labeled. Never NULL: on failure a stream that refuses values, with the error
 * set.
 */
struct weir_stream *wr_stream_get(struct wr_registry *registry, const char *group, const weir_label *labels,
                                  size_t count, struct wr_error *error);

#endif
