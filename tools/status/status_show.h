/* status_show: what a process tells of itself, for people. Texts come from a file that may hold
 * anything: what would disguise others on a terminal is shown escaped. */
#ifndef WEIR_TOOLS_STATUS_SHOW_H
#define WEIR_TOOLS_STATUS_SHOW_H

#include "status_find.h"

struct wr_buffer;

/* Appends all there is, in some lines. */
void status_show(struct wr_buffer *out, const struct status_process *process);

/* Appends one line, to stand below that of status_show_head. */
void status_show_head(struct wr_buffer *out);
void status_show_line(struct wr_buffer *out, const struct status_process *process);

#endif
