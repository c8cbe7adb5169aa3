/* series: a name of a stream, as programs ask for it. */
#ifndef WR_SERIES_H
#define WR_SERIES_H

#include "registry/registry.h"

struct wr_error;

/* [any thread] The series of a name: found, or made; beyond settings.max_series the group's overflow series;
 * or, never NULL, one that refuses, and error tells why. */
struct weir_metric *wr_series_get(struct wr_registry *registry, struct weir_stream *stream, const char *name,
                                  uint16_t flags, struct wr_error *error);

/* [any thread] The series of a name that is known already; NULL: it is not. */
struct weir_metric *wr_series_find(const struct wr_registry *registry, const struct weir_stream *stream,
                                   const char *name, uint16_t flags);

/* [making] The overflow series of a group; NULL without memory. */
struct weir_metric *wr_series_overflow(struct wr_registry *registry, struct wr_group *group);

/* [any thread] See weir_describe. */
int wr_series_describe(struct wr_registry *registry, struct weir_stream *stream, const char *name,
                       const char *unit, const char *help, struct wr_error *error);

#endif
