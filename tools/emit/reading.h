/* reading: reads a descriptor until its end, SIGINT or SIGTERM. */
#ifndef WEIR_TOOLS_READING_H
#define WEIR_TOOLS_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* From now on the first SIGINT or SIGTERM ends the input instead of the process; a second one ends the process.
 * Signals that are ignored stay ignored. */
void reading_catch_signals(void);

/* Whether such a signal has arrived. */
bool reading_was_stopped(void);

/* Waits for bytes and reads at most `room`. Returns how many; 0: the end, or a signal; -1: errno. */
ssize_t reading_read(int fd, char *to, size_t room);

#endif
