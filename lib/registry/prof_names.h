/* prof_names: the series of what weir_prof_begin measures, found by the name of the measurement. */
#ifndef WR_PROF_NAMES_H
#define WR_PROF_NAMES_H

#include "registry/registry.h"

/* What follows the name of the measurement, and a dot. */
#define WR_PROF_NAMES_SUCCESS "success"
#define WR_PROF_NAMES_FAILURE "failure"
#define WR_PROF_NAMES_DURATION_MS "duration.ms"

/* Never freed. */
struct wr_prof_names {
    struct wr_hash_entry entry;
    struct weir_stream *stream;
    struct weir_metric *success, *failure, *duration_ms;
    uint8_t length;
    char name[];
};

/* [any thread] Returns the series of a measurement, which are declared and created at its first use. NULL: the
 * name is bad, one of the series cannot be created, or the program declared it as something else. */
const struct wr_prof_names *wr_prof_names_get(struct wr_registry *registry, struct weir_stream *stream,
                                              const char *name);

#endif
