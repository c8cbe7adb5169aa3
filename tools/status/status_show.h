/* status_show: a process's snapshot as text. Its texts are escaped for the terminal. */
#ifndef WEIR_TOOLS_STATUS_SHOW_H
#define WEIR_TOOLS_STATUS_SHOW_H

#include "status_find.h"

struct wr_buffer;

/* Appends everything, in several lines. */
void status_show(struct wr_buffer *out, const struct status_process *process);

/* Appends the heading of a table of processes, and one row. */
void status_show_head(struct wr_buffer *out);
void status_show_line(struct wr_buffer *out, const struct status_process *process);

#endif
