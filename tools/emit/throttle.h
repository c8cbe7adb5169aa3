/* throttle: limits the input to what fits the handlers' queues and spools, so that a slow destination slows the
 * input down instead of losing values, whatever its handler's `overflow` is. */
#ifndef WEIR_TOOLS_THROTTLE_H
#define WEIR_TOOLS_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

/* All zeros: initial state. */
struct throttle {
    uint64_t room; /* bytes that fit every queue */
};

/* Reserves room for `bytes` of a group in the queues of its handlers. If there is none, waits a moment for them
 * and returns false: the caller repeats the call. */
bool throttle_reserve(struct throttle *throttle, const char *group, uint64_t bytes);

#endif
