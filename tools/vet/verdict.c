/* Verdicts: how the child process of a check reports its result. */

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "os/clock.h"
#include "text/common.h"
#include "vet.h"

struct vet_page *vet_page;

int64_t vet_now_ms(void)
{
    return wr_clock_monotonic_ns() / WR_NS_PER_MS;
}

bool vet_has_time(void)
{
    return (vet_now_ms() - vet_page->began_ms) * 4 < vet_page->deadline_ms && !atomic_load(&vet_page->stop);
}

void vet_see(const char *guide)
{
    snprintf(vet_page->guide, sizeof vet_page->guide, "%s", guide);
}

/* Only the first verdict is recorded. A thread that reports a later one is blocked until the process exits. */
static void record(enum vet_verdict verdict, const char *format, va_list arguments)
{
    static atomic_flag taken = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&taken))
        for (;;)
            pause();
    vsnprintf(vet_page->message, sizeof vet_page->message, format, arguments);
    atomic_store(&vet_page->verdict, verdict);
}

void vet_note_pass(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    record(VET_OK, format, arguments);
    va_end(arguments);
}

void vet_end(enum vet_verdict verdict, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    record(verdict, format, arguments);
    va_end(arguments);
    _exit(0);
}

/* Several threads may be in calls of the plugin at once; the last one that entered is reported. */
void vet_enter(enum vet_call call, const char *format, ...)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&mutex);
    vsnprintf(vet_page->operation, sizeof vet_page->operation, format, arguments);
    pthread_mutex_unlock(&mutex);
    va_end(arguments);
    atomic_store(&vet_page->call, call);
    atomic_fetch_add(&vet_page->progress, 1);
}

void vet_leave(void)
{
    atomic_store(&vet_page->call, VET_NOTHING);
    vet_page->operation[0] = '\0';
    atomic_fetch_add(&vet_page->progress, 1);
}
