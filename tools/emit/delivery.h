/* delivery: waiting until handlers have delivered, and telling what became of it. */
#ifndef WEIR_TOOLS_DELIVERY_H
#define WEIR_TOOLS_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

/* Waits until all that was added is delivered; gives up when timeout_ms have gone by, of which patient: without
 * any value being settled. */
void delivery_wait(int64_t timeout_ms, bool patient);

/* How many values wait in queues. */
uint64_t delivery_queued(void);

/* Whether all that came to the handlers was delivered; verbose: prints each one's account. */
bool delivery_report(bool verbose);

#endif
