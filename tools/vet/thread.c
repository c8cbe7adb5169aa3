#include "thread.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "os/thread.h"
#include "vet.h"

pthread_t vet_thread_start(void *(*code)(void *ctx), void *ctx)
{
    sigset_t all, before;
    pthread_t thread;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0 || !wr_thread_set_stack(&attributes))
        vet_skip("vet itself: cannot start a thread");
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, &attributes, code, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error)
        vet_skip("vet itself: cannot start a thread: %s", strerror(error));
    return thread;
}

void vet_thread_sleep_ms(int64_t ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}
