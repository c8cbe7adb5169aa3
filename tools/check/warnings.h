/* warnings: what a valid configuration probably does not mean. */
#ifndef WEIR_TOOLS_WARNINGS_H
#define WEIR_TOOLS_WARNINGS_H

struct wr_buffer;
struct wr_plan;
struct wr_source;

/* Appends the section "warnings", unless there are none: handlers and sources that share a file or an address,
 * sources that read what their own values are sent to, and sources without a route. Exits if out of memory. */
void warnings_put(struct wr_buffer *out, const struct wr_plan *plan, const struct wr_source *sources);

#endif
