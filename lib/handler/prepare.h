/* prepare: calls the optional callback `prepare` of a type, once in a process. */
#ifndef WR_PREPARE_H
#define WR_PREPARE_H

#include <stdbool.h>

struct wr_error;
struct wr_log;
struct wr_node;
struct wr_type;

/* [configuring, no locks held] name: of the handler or source that needs the type, for messages; node: that in
 * its configuration, or NULL. Returns true if it was called before, or has none. Returns false with the error
 * set. */
bool wr_prepare(struct wr_type *type, const char *name, const struct wr_node *node, struct wr_log *log,
                struct wr_error *error);

#endif
