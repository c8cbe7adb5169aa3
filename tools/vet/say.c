/* How a check ends, seen from the child that runs it. */

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "vet.h"

struct vet_page *vet_page;

int64_t vet_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The first verdict counts: another thread may be about to say something else. */
static void note(enum vet_verdict verdict, const char *format, va_list arguments)
{
    static atomic_flag taken = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&taken))
        for (;;)
            pause();
    vsnprintf(vet_page->words, sizeof vet_page->words, format, arguments);
    atomic_store(&vet_page->verdict, verdict);
}

void vet_note_pass(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    note(VET_OK, format, arguments);
    va_end(arguments);
}

void vet_pass(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    note(VET_OK, format, arguments);
    va_end(arguments);
    _exit(0);
}

void vet_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    note(VET_FAIL, format, arguments);
    va_end(arguments);
    _exit(0);
}

void vet_fail_to_create(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    atomic_store(&vet_page->uncreatable, true);
    note(VET_FAIL, format, arguments);
    va_end(arguments);
    _exit(0);
}

void vet_skip(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    note(VET_SKIPPED, format, arguments);
    va_end(arguments);
    _exit(0);
}

/* Several threads may be inside at once; then any of them is good enough for the words. */
void vet_enter(enum vet_call call, const char *format, ...)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&mutex);
    vsnprintf(vet_page->doing, sizeof vet_page->doing, format, arguments);
    pthread_mutex_unlock(&mutex);
    va_end(arguments);
    atomic_store(&vet_page->call, call);
}

void vet_leave(void)
{
    atomic_store(&vet_page->call, VET_NOTHING);
    vet_page->doing[0] = '\0';
}
