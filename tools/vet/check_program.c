/* Checks in a whole program: the real core with its threads around the handler, through the interface that
 * programs use. */

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/weir.h>

#include "text/buffer.h"
#include "subject.h"
#include "vet.h"

enum { THREADS = 2, VALUES = 500 };

/* ---- The program ----------------------------------------------------------------------------- */

/* Another value of a common option makes another handler of it: the old one is closed and destroyed, the new
 * one opened. */
static void configure(const struct vet_subject *subject, const char *linger)
{
    static const char head[] = "{\"handlers\":{";
    struct wr_buffer text = {0};
    char *plain = vet_subject_text(subject, NULL);
    if (!plain)
        vet_skip("vet itself: no memory");
    wr_buffer_put_format(
        &text, "{\"settings\":{\"shutdown_timeout\":\"1s\"},\"handlers\":{\"*\":{\"linger\":\"%s\"},%s", linger,
        plain + strlen(head));
    free(plain);
    vet_enter(VET_CREATE, "configuring a program with it");
    if (weir_configure_text(text.data, text.length))
        vet_fail("%s", weir_last_error());
    vet_leave();
    wr_buffer_fini(&text);
}

static void *add_values(void *ctx)
{
    weir_stream *stream = weir_get_stream("vet.program");
    (void)ctx;
    for (int i = 0; i < VALUES; i++) {
        weir_value event[] = {{"first", i}, {"second", i / 2.0}};
        weir_add_value(stream, "single", i);
        weir_emit(stream, event, 2);
    }
    return NULL;
}

static void add_from_threads(void)
{
    pthread_t threads[THREADS];
    int started = 0;
    while (started < THREADS && pthread_create(&threads[started], NULL, add_values, NULL) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

/* ---- The ledger ------------------------------------------------------------------------------ */

static void check_ledger(void)
{
    weir_handler_stats stats = {.size = sizeof stats};
    if (weir_get_handler_stats("vet", &stats, sizeof stats))
        vet_fail("%s", weir_last_error());
    uint64_t dropped = 0;
    for (int i = 0; i < WEIR_DROPPED_MAX; i++)
        dropped += stats.dropped[i];
    if (stats.faults)
        vet_fail("in a program it broke the contract %" PRIu64 " times; WEIR_LOG=error tells how",
                 stats.faults);
    if (stats.offered + stats.recovered != stats.delivered + dropped + stats.queued + stats.spooled)
        vet_fail("the ledger does not add up: %" PRIu64 " offered, %" PRIu64 " delivered, %" PRIu64
                 " dropped, %" PRIu64 " queued",
                 stats.offered, stats.delivered, dropped, stats.queued);
}

static void flush(const struct vet_subject *subject)
{
    vet_enter(VET_EMIT, "delivering in a program");
    int result = weir_flush(subject->deadline_ms / 2);
    vet_leave();
    check_ledger();
    if (result == WEIR_ERR_TIMEOUT)
        vet_skip("not everything could be delivered in time, so nothing was checked: %s", weir_last_error());
}

static void leave_environment(void)
{
    unsetenv("WEIR_CONFIG"); /* it would win over what is configured here */
    unsetenv("BENCHMARK_AI");
}

void vet_check_program(const struct vet_subject *subject)
{
    leave_environment();
    configure(subject, "0s");
    add_from_threads();
    flush(subject);
    vet_enter(VET_WAKE, "reloading in a program");
    weir_reload(); /* refused where there is no file to read again, but files are opened anew */
    vet_leave();
    configure(subject, "1ms");
    add_from_threads();
    flush(subject);
    vet_note_pass(
        "values of several threads, a reload, a changed configuration; the ledger adds up; the program ends");
}

/* ---- Fork ------------------------------------------------------------------------------------ */

static _Noreturn void be_child(void)
{
    weir_add_value(weir_get_stream("vet.child"), "value", 1);
    exit(0);
}

void vet_check_fork(const struct vet_subject *subject)
{
    int status = 0;
    leave_environment();
    configure(subject, "0s");
    add_values(NULL);
    flush(subject);
    vet_enter(VET_ABANDON, "a forked child of a program with it");
    pid_t child = fork();
    if (child == 0)
        be_child();
    if (child < 0 || waitpid(child, &status, 0) != child)
        vet_skip("vet itself: no process");
    if (WIFSIGNALED(status))
        vet_fail("a forked child is killed by %s", strsignal(WTERMSIG(status)));
    vet_leave();
    add_values(NULL);
    flush(subject);
    vet_note_pass("a forked child adds and ends; the parent goes on delivering");
}
