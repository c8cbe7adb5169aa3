/* process_limits: figures of one process that do not change: when it was started, and its limits. */
#ifndef WEIR_PLUGINS_PROCESS_LIMITS_H
#define WEIR_PLUGINS_PROCESS_LIMITS_H

#include <stdint.h>

#include "process_list.h"

/* NAN: it could not be read. */
struct process_limits {
    double start_time_s;               /* since 1970 */
    double descriptors, virtual_bytes; /* the soft limits; UINT64_MAX: none */
};

/* Reads them of the process that was started so many ticks after boot. */
void process_limits_read(struct process_list *list, int64_t pid, double started, struct process_limits *limits);

#endif
