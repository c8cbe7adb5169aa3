#include "os/thread.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "text/common.h"
#include "os/signals.h"

/* How often to make way for a thread that is about to end, before sleeping. */
enum { YIELDS = 200 };

/* What a thread's stack holds before its first frame: the C library puts all static thread-local storage of the
 * program and its libraries there, which may be megabytes. glibc reports it by a function that has no header
 * (the Java and Rust runtimes use it too); elsewhere the documented minimum has to do. */
static size_t stack_overhead(const pthread_attr_t *attributes)
{
    typedef size_t get_minimum(const pthread_attr_t *attributes);
    enum { NOT_LOOKED_UP = 1 };
    static _Atomic uintptr_t place = NOT_LOOKED_UP; /* a look-up searches all libraries */
    if (atomic_load_explicit(&place, memory_order_relaxed) == NOT_LOOKED_UP)
        atomic_store_explicit(&place, (uintptr_t)dlsym(RTLD_DEFAULT, "__pthread_get_minstack"),
                              memory_order_relaxed);
    get_minimum *known = (get_minimum *)atomic_load_explicit(&place, memory_order_relaxed);
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

/* The stack on which the process began, which stays as long as the process, and in forked children: where it
 * begins and ends. The C library reads that from /proc/self/maps, which takes longer than all else of a child's
 * configuration. 0: not known. */
static _Atomic uintptr_t first_lowest, first_end;

/* Above the end that the C library reports lie the pointers to arguments and environment and what they point
 * at, the random bytes among it; other threads' stacks are farther away. */
#define ARGUMENTS_MOST ((uintptr_t)16 << 20)

static void remember_first(uintptr_t lowest, uintptr_t end)
{
    uintptr_t above = (uintptr_t)getauxval(AT_RANDOM);
    if (above < lowest || above >= end + ARGUMENTS_MOST)
        return;
    atomic_store_explicit(&first_lowest, lowest, memory_order_relaxed);
    atomic_store_explicit(&first_end, end, memory_order_release); /* pairs with the acquire in is_on_first */
}

static bool is_on_first(uintptr_t here)
{
    return here < atomic_load_explicit(&first_end, memory_order_acquire) &&
           here >= atomic_load_explicit(&first_lowest, memory_order_relaxed) + WR_THREAD_STACK_ROOMY;
}

/* On a stack that is not the thread's own, such as a coroutine's, nothing is known: it counts as small. If the
 * system does not report (the first thread's size is read from /proc), the stack is that of a usual thread. */
static bool is_roomy(void)
{
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t size = 0;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (is_on_first(here))
        return true;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return true;
    pthread_attr_getstack(&attributes, &lowest, &size);
    pthread_attr_destroy(&attributes);
    remember_first((uintptr_t)lowest, (uintptr_t)lowest + size);
    uintptr_t left = here - (uintptr_t)lowest; /* above the stack: large */
    return left < size && left >= WR_THREAD_STACK_ROOMY;
}

struct roomy_call {
    void (*run)(void *argument);
    void *argument;
};

static void *run_call(void *argument)
{
    const struct roomy_call *call = argument;
    call->run(call->argument);
    return NULL;
}

static bool run_elsewhere(struct roomy_call *call)
{
    pthread_t thread;
    sigset_t signals;
    wr_signals_block(&signals); /* a signal handler must not wait for what this thread waits for */
    bool started = wr_thread_start(run_call, call, &thread);
    if (started)
        pthread_join(thread, NULL);
    wr_signals_restore(&signals);
    return started;
}

void wr_thread_run_roomy(void (*run)(void *argument), void *argument)
{
    struct roomy_call call = {run, argument};
    if (is_roomy() || !run_elsewhere(&call))
        run(argument);
}

void wr_thread_set_name(const char *name)
{
    char text[16];
    snprintf(text, sizeof text, "%s", name);
    prctl(PR_SET_NAME, text);
}

/* Polls, since the deadline of pthread_timedjoin_np is by the wall clock, which may be set. The thread is about
 * to end, which takes less than the shortest sleep: at first this only makes way for it. */
bool wr_thread_join_by(pthread_t thread, int64_t deadline_ns)
{
    for (int tries = 0; pthread_tryjoin_np(thread, NULL) != 0; tries++) {
        if (tries < YIELDS)
            sched_yield();
        else if (wr_clock_monotonic_ns() >= deadline_ns)
            return false;
        else
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
