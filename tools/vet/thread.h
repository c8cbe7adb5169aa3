/* thread: threads like those on which the core calls plugins, and commands that are started from them. */
#ifndef WEIR_TOOLS_VET_THREAD_H
#define WEIR_TOOLS_VET_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Starts a thread with the core's size of stack, and with all signals blocked except those by which vet finds
 * where a fault is. Caller joins it. The check is skipped if it cannot be started. */
pthread_t vet_thread_start(void *(*code)(void *ctx), void *ctx);

/* Starts a shell command with no signals blocked, and with its standard output there. is_apart: it has a
 * process group of its own, and no standard input. Returns 0 or errno. */
int vet_thread_spawn(pid_t *pid, const char *command, int output, bool is_apart);

void vet_thread_sleep_ms(int64_t ms);

#endif
