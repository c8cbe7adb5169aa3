/* delivery: waits until handlers have delivered, and reports what they did. */
#ifndef WEIR_TOOLS_DELIVERY_H
#define WEIR_TOOLS_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

struct weir_handler_stats;
struct wr_buffer;

/* Waits until all values are delivered, at most timeout_ms. patient: the timeout starts again whenever values
 * are delivered or dropped. */
void delivery_wait(int64_t timeout_ms, bool patient);

/* Whether all handlers have failed for good. */
bool delivery_has_ended(void);

/* How long the end may take: settings.shutdown_timeout. */
int64_t delivery_timeout_ns(void);

/* How many values are queued. */
uint64_t delivery_queued(void);

/* Appends what a handler has done, as a line. */
void delivery_put(struct wr_buffer *out, const char *handler, const struct weir_handler_stats *stats);

/* Logs the groups whose values no handler got. Returns whether there are any. */
bool delivery_warn_of_unrouted(void);

/* Returns whether everything that was offered to handlers was delivered. verbose: prints the counts of each
 * handler. */
bool delivery_report(bool verbose);

#endif
