/* status_watch: the handlers of all running programs as a table with a row each, those that fail first, which
 * fits the screen. */
#ifndef WEIR_TOOLS_STATUS_WATCH_H
#define WEIR_TOOLS_STATUS_WATCH_H

#include <stddef.h>

#include "status_find.h"

struct figures_screen;
struct wr_buffer;
struct status_row;

/* All zeros: empty. */
struct status_watch {
    struct status_row *rows;
    size_t count, processes;
    uint32_t room;
};

/* Takes the handlers of a process. */
void status_watch_add(struct status_watch *watch, const struct status_process *process);

/* Appends the table, and empties it. On a terminal it has at most as many lines as that. */
void status_watch_put(struct wr_buffer *out, struct status_watch *watch, const struct figures_screen *screen);

#endif
