/* forward_reported: up to where a handler's ledger was reported at its leaves, kept for the handler that takes
 * its place in this process: the ledger goes on, and a receiver adds up what is reported at each leave. */
#ifndef FORWARD_REPORTED_H
#define FORWARD_REPORTED_H

#include <stdbool.h>

#include "../forwarding/forward_wire.h"

struct reported {
    struct wire_totals since; /* the ledger at the last leave, but for what was waiting */
    bool has_begun;           /* a handler of that name was connected before */
};

/* Returns that of the handlers of a name in this process, all zeros at first; NULL: out of memory. Never freed.
 * Only one handler of a name uses it at a time: its worker. */
struct reported *wr_forward_reported(const char *handler);

#endif
