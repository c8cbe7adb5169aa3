/* thread: weir's own threads. */
#ifndef WR_THREAD_H
#define WR_THREAD_H

#include <stdbool.h>

/* Starts a detached thread in which all signals are blocked. name: at most 15 characters. */
bool wr_thread_start(const char *name, void *(*run)(void *), void *argument);

#endif
