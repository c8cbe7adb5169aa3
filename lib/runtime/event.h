/* event: adds samples with a kind, labels, a time and metadata, by the slow path. */
#ifndef WR_EVENT_H
#define WR_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h>

#include "runtime/intake.h"

struct wr_event {
    const weir_typed_value *values;
    /* the series of each of `values`, of the event's group. Without it, or where it has NULL, they are found by
     * their names */
    struct weir_metric *const *metrics;
    weir_typed_value *changes; /* `values` itself, if each is added to the level of its gauge: once the event
                                  can no longer be refused, they become the new levels; or NULL */
    size_t count;              /* at least 1 */
    const weir_label *labels; /* in addition to those of the stream, for series that are found by their names */
    size_t label_count;
    const int64_t *time_ns; /* since 1970-01-01 UTC; NULL: now */
    bool cumulative;
    const char *metadata; /* only if count is 1; or NULL */
    bool never_waits;     /* wr_event_add returns WR_INTAKE_FULL where it would have to */
};

/* Adds an event. Returns as weir_emit. Names are checked even if the group has no route. */
int wr_event_add(struct weir_stream *stream, const struct wr_event *event);

/* Adds a sample. Returns as weir_add. */
int wr_event_add_sample(struct weir_stream *stream, const weir_sample_spec *spec);

#endif
