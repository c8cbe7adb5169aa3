/* thread: starts and ends weir's own threads. */
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
 * stack, whatever the resource limits and the thread-local storage of the program. It must be joined or
 * released. Returns false if the system refuses a thread. */
bool wr_thread_start(void *(*run)(void *), void *argument, pthread_t *thread);

/* The least stack for what runs on threads of the program and calls plugins: see wr_thread_run_roomy. */
enum { WR_THREAD_STACK_ROOMY = 256 * 1024 };

/* Calls run(argument) with at least WR_THREAD_STACK_ROOMY bytes of stack: on the calling thread if it has so
 * much left, or if no thread can be started; else on a thread that has ended when this returns, while the
 * caller's signals are blocked. */
void wr_thread_run_roomy(void (*run)(void *argument), void *argument);

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
