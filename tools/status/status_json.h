/* status_json: what a process tells of itself, for programs. */
#ifndef WEIR_TOOLS_STATUS_JSON_H
#define WEIR_TOOLS_STATUS_JSON_H

#include "status_find.h"

struct wr_buffer;

/* Appends all there is as a JSON object. Texts that are not UTF-8 are shown with \xNN for what is not. What
 * does not apply is null. */
void status_json_put(struct wr_buffer *out, const struct status_process *process);

#endif
