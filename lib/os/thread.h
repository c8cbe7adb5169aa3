/* thread: starts and ends weir's own threads. */
#ifndef WR_THREAD_H
#define WR_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Starts a thread in which all signals are blocked. It must be joined or released. */
bool wr_thread_start(void *(*run)(void *), void *argument, pthread_t *thread);

/* Names the calling thread, for debuggers and process lists; the name is cut after 15 bytes. */
void wr_thread_set_name(const char *name);

/* Waits for a thread that is about to end, including the libraries' cleanup on it. Returns false if it has not
 * ended by deadline_ns. */
bool wr_thread_join_by(pthread_t thread, int64_t deadline_ns);

/* Joins the thread if it has ended, else detaches it. */
void wr_thread_release(pthread_t thread);

/* Sleeps until the process ends. */
_Noreturn void wr_thread_park(void);

#endif
