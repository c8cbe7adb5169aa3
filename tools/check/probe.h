/* probe: tries the destinations of all handlers, and what sources read from, at the same time, without
 * delivering or taking anything. */
#ifndef WEIR_TOOLS_PROBE_H
#define WEIR_TOOLS_PROBE_H

#include <stdbool.h>
#include <stdint.h>

struct wr_buffer;
struct wr_plan;
struct wr_source;

struct probe_result {
    bool reachable; /* everything that was tried is */
    bool stuck;     /* a handler or source has not returned in time: they must not be freed */
};

/* Tries each handler of the plan and each source of the list. Appends a line for each: name, type, destination,
 * and "ok" or the reason; a source whose type has no probe is not tried. */
struct probe_result probe_all(const struct wr_plan *plan, const struct wr_source *sources, int64_t timeout_ns,
                              struct wr_buffer *out);

#endif
