/* unavailable: the stand-in for a handler whose type cannot be used in a forked child. It never opens, so what
 * is added for the handler stays where it outlives the process: in its spool, or in the journal. */
#ifndef WR_UNAVAILABLE_H
#define WR_UNAVAILABLE_H

#include <stdbool.h>

#include "handler/instance.h"

/* Replaces the callbacks of a handler that was not created by the stand-in's; then it counts as created. Its
 * options stay, so a configuration that does not change them keeps it. Returns false if out of memory. */
bool wr_unavailable_make(struct wr_instance *instance);

#endif
