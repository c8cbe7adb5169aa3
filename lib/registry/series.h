/* series: finds and creates the series of a name in a stream. */
#ifndef WR_SERIES_H
#define WR_SERIES_H

#include "registry/registry.h"

struct wr_meaning;

struct wr_error;

/* [any thread] Returns the series of a name, which is created if necessary. Beyond the name's limit of label
 * sets it is the name's series in the group's overflow stream; beyond settings.max_series it is the group's
 * overflow series. Never NULL: on failure a series that refuses values, with the error set. */
struct weir_metric *wr_series_get(struct wr_registry *registry, struct weir_stream *stream, const char *name,
                                  uint16_t flags, struct wr_error *error);

/* [any thread] The same for a value that is to be added now: if the series has ended, it takes its places in
 * the limits again, or beyond them is the one that has the values of others. */
struct weir_metric *wr_series_get_living(struct wr_registry *registry, struct weir_stream *stream,
                                         const char *name, uint16_t flags, struct wr_error *error);

/* [any thread] Returns the series of a name, or NULL if it does not exist. */
struct weir_metric *wr_series_find(const struct wr_registry *registry, const struct weir_stream *stream,
                                   const char *name, uint16_t flags);

/* [registry lock] Returns the overflow series of a group's own or foreign streams. NULL if out of memory. */
struct weir_metric *wr_series_overflow(struct wr_registry *registry, struct wr_group *group, bool is_foreign);

/* [any thread] A series ends: its label set gives back its places in the limits. It remains, and begins anew
 * with its next value: then wr_series_begin takes the places again, also beyond a limit. Both may be called
 * repeatedly. */
void wr_series_end(struct wr_registry *registry, struct weir_metric *metric);
void wr_series_begin(struct wr_registry *registry, struct weir_metric *metric);

/* [any thread] Marks a series as one of this process, and as one that it has read from a disk. */
void wr_series_meet(struct wr_registry *registry, struct weir_metric *metric);
void wr_series_recover(struct weir_metric *metric);

/* [any thread] Whether it is known only from what other processes have left. */
static inline bool wr_series_is_of_others(const struct weir_metric *metric)
{
    /* one variable: whichever mark is made last sees the other one, so no order is needed beside it */
    return atomic_load_explicit(&metric->known, memory_order_relaxed) == WR_KNOWN_FROM_DISK;
}

/* [any thread] Returns the series of a part of what weir knows of another series, which is created if necessary
 * and not counted against any limit. It is not the one that calls get by the same name. It has the given
 * meaning unless its own name means something; the texts are borrowed for ever. NULL: the name is too long, or
 * out of memory. */
struct weir_metric *wr_series_derive(struct wr_registry *registry, const struct weir_stream *stream,
                                     const char *name, uint16_t flags, const struct wr_meaning *meaning);

/* [any thread, reading if there are labels] Returns the series of a name with labels in addition to those of
 * the stream, as wr_series_get. */
struct weir_metric *wr_series_get_labeled(struct wr_registry *registry, struct weir_stream *stream,
                                          const char *name, uint16_t flags, const weir_label *labels,
                                          size_t count, struct wr_error *error);

#endif
