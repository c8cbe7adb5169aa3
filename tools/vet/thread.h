/* thread: threads like those on which the core calls plugins. */
#ifndef WEIR_TOOLS_VET_THREAD_H
#define WEIR_TOOLS_VET_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* Starts a thread with the core's size of stack, and with all signals blocked except those by which vet finds
 * where a fault is. Caller joins it. The check is skipped if it cannot be started. */
pthread_t vet_thread_start(void *(*code)(void *ctx), void *ctx);

void vet_thread_sleep_ms(int64_t ms);

#endif
