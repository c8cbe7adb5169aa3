/* throttle: no more is added than the handlers' queues hold, so that a slow destination slows the input down
 * instead of losing values, whatever its handler's `overflow` says. */
#ifndef WEIR_TOOLS_THROTTLE_H
#define WEIR_TOOLS_THROTTLE_H

#include <stdbool.h>
#include <stdint.h>

/* All zeros: nothing is known yet. */
struct throttle {
    uint64_t room; /* bytes that are known to fit every queue */
};

/* Looks whether so many bytes more of a group fit the queues of its handlers, and waits a moment if not.
 * Answers whether they do: they are taken off the room then. */
bool throttle_take(struct throttle *throttle, const char *group, uint64_t bytes);

#endif
