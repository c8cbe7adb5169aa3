/* failing: allocations that fail on request. For programs linked with
 * $(failing_ldflags), which wraps malloc and os/pages; affects only statically linked code. */
#ifndef FAILING_H
#define FAILING_H

#include <stdbool.h>

/* From now on all allocations fail, or succeed again. */
void failing_set(bool failing);

/* The next `calls` allocations succeed, later ones fail, until failing_set. */
void failing_after(unsigned calls);

/* The same, but only one fails. */
void failing_once(unsigned calls);

#endif
