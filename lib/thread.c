#include "thread.h"

#include <pthread.h>
#include <string.h>

#include "signals.h"

/* Enough for libraries with an appetite; a program that locks its memory pays for every stack in full. */
enum { STACK_BYTES = 1024 * 1024 };

bool wr_thread_start(const char *name, void *(*run)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t signals;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    wr_signals_block(&signals); /* the new thread inherits it */
    bool started = pthread_create(&thread, &attributes, run, argument) == 0;
    wr_signals_restore(&signals);
    pthread_attr_destroy(&attributes);
    if (started) {
        char short_name[16];
        strncpy(short_name, name, sizeof short_name - 1);
        short_name[sizeof short_name - 1] = '\0';
        pthread_setname_np(thread, short_name);
    }
    return started;
}
