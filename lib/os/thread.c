#include "os/thread.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "text/common.h"
#include "os/signals.h"

/* Enough for demanding libraries. Not larger, as in a program that locks its memory all of it is resident. */
enum { STACK_BYTES = 1024 * 1024 };

bool wr_thread_start(void *(*run)(void *), void *argument, pthread_t *thread)
{
    pthread_attr_t attributes;
    sigset_t signals;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    wr_signals_block(&signals); /* the new thread inherits it */
    bool started = pthread_create(thread, &attributes, run, argument) == 0;
    wr_signals_restore(&signals);
    pthread_attr_destroy(&attributes);
    return started;
}

void wr_thread_set_name(const char *name)
{
    char text[16];
    snprintf(text, sizeof text, "%s", name);
    prctl(PR_SET_NAME, text);
}

/* Polls, since the deadline of pthread_timedjoin_np is by the wall clock, which may be set. The thread is about
 * to end, so the wait is short. */
bool wr_thread_join_by(pthread_t thread, int64_t deadline_ns)
{
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        if (wr_clock_monotonic_ns() >= deadline_ns)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 100 * WR_NS_PER_US}, NULL);
    }
    return true;
}

void wr_thread_release(pthread_t thread)
{
    if (pthread_tryjoin_np(thread, NULL) != 0)
        pthread_detach(thread);
}

void wr_thread_park(void)
{
    for (;;)
        pause();
}
