/* thread: weir's own threads. */
#ifndef WR_THREAD_H
#define WR_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The stack that a thread has for a plugin's code, and on top of it for weir's own frames. */
enum { WR_THREAD_STACK_FREE = 1024 * 1024, WR_THREAD_STACK_OWN = 256 * 1024 };

/* Sets the size of stack that wr_thread_start gives a thread. Returns false if the system refuses it. */
bool wr_thread_set_stack(pthread_attr_t *attributes);

/* Starts a thread with all signals blocked and at least WR_THREAD_STACK_FREE + WR_THREAD_STACK_OWN bytes of
 * stack, whatever the resource limits and the thread-local storage of the program. It has to be joined or let
 * go. Returns false if the system refuses a thread. */
bool wr_thread_start(void *(*run)(void *), void *argument, pthread_t *thread);

/* Names the calling thread, for debuggers and process lists; at most 15 bytes count. Not pthread_setname_np,
 * which for another thread goes by a file below /proc. */
void wr_thread_set_name(const char *name);

/* Waits until a thread that is about to end has ended, with all that libraries do on it last; false: not by
 * deadline_ns. */
bool wr_thread_join_by(pthread_t thread, int64_t deadline_ns);

/* The same without waiting: a thread that takes its time ends on its own. */
void wr_thread_let_go(pthread_t thread);

/* Sleeps until the process is gone. */
_Noreturn void wr_thread_park(void);

#endif
