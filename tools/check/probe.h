/* probe: tries the destinations of handlers, all at the same time, without delivering anything. */
#ifndef WEIR_TOOLS_PROBE_H
#define WEIR_TOOLS_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "text/buffer.h"
#include "engine/plan.h"

/* What was found. */
struct probe_result {
    bool good;  /* every destination could be reached */
    bool stuck; /* a handler has not answered in time and is at it still: it must not be freed */
};

/* Tries each handler of the plan and appends a line for it: name, type, destination, and "ok" or the reason. */
struct probe_result probe_all(const struct wr_plan *plan, int64_t timeout_ns, struct wr_buffer *out);

#endif
