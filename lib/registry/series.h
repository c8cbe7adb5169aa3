/* series: finds and creates the series of a name in a stream. */
#ifndef WR_SERIES_H
#define WR_SERIES_H

#include "registry/registry.h"

struct wr_error;

/* [any thread] Returns the series of a name, which is created if necessary; beyond settings.max_series the
 * group's overflow series. Never NULL: on failure a series that refuses values, with the error set. */
struct weir_metric *wr_series_get(struct wr_registry *registry, struct weir_stream *stream, const char *name,
                                  uint16_t flags, struct wr_error *error);

/* [any thread] Returns the series of a name, or NULL if it does not exist. */
struct weir_metric *wr_series_find(const struct wr_registry *registry, const struct weir_stream *stream,
                                   const char *name, uint16_t flags);

/* [registry lock] Returns the overflow series of a group. NULL if out of memory. */
struct weir_metric *wr_series_overflow(struct wr_registry *registry, struct wr_group *group);

/* [any thread] See weir_describe. */
int wr_series_describe(struct wr_registry *registry, struct weir_stream *stream, const char *name,
                       const char *unit, const char *help, struct wr_error *error);

#endif
