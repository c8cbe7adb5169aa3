/* probe: tries the destinations of all handlers at the same time, without delivering anything. */
#ifndef WEIR_TOOLS_PROBE_H
#define WEIR_TOOLS_PROBE_H

#include <stdbool.h>
#include <stdint.h>

struct wr_buffer;
struct wr_plan;

struct probe_result {
    bool reachable; /* every destination is */
    bool stuck;     /* a handler has not returned in time: the plan must not be freed */
};

/* Tries each handler of the plan. Appends a line for each: name, type, destination, and "ok" or the reason. */
struct probe_result probe_all(const struct wr_plan *plan, int64_t timeout_ns, struct wr_buffer *out);

#endif
