#include "os/thread.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "text/common.h"
#include "os/signals.h"

/* What a thread's stack holds before its first frame: the C library puts all static thread-local storage of the
 * program and its libraries there, which may be megabytes. glibc tells by a function that has no header (the
 * Java and Rust runtimes use it too); elsewhere the documented minimum has to do. */
static size_t stack_overhead(const pthread_attr_t *attributes)
{
    typedef size_t get_minimum(const pthread_attr_t *attributes);
    get_minimum *known = (get_minimum *)(uintptr_t)dlsym(RTLD_DEFAULT, "__pthread_get_minstack");
    long minimum = known ? (long)known(attributes) : sysconf(_SC_THREAD_STACK_MIN);
    return minimum > 0 ? (size_t)minimum : 0;
}

/* Not more than is promised: a program that locks its memory pays for every stack in full. */
bool wr_thread_set_stack(pthread_attr_t *attributes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), guard = 0;
    pthread_attr_getguardsize(attributes, &guard); /* part of the size, by glibc's count */
    size_t size = WR_THREAD_STACK_FREE + WR_THREAD_STACK_OWN + guard + stack_overhead(attributes);
    return pthread_attr_setstacksize(attributes, (size + page - 1) / page * page) == 0;
}

bool wr_thread_start(void *(*run)(void *), void *argument, pthread_t *thread)
{
    pthread_attr_t attributes;
    sigset_t signals;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    wr_signals_block(&signals); /* the new thread inherits it */
    bool started = wr_thread_set_stack(&attributes) && pthread_create(thread, &attributes, run, argument) == 0;
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
