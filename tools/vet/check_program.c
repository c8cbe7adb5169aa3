/* Checks in a program: the handler runs in the real core, with its threads, through the public API. */

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include <weir/weir.h>

#include "lane/losses.h"
#include "program.h"

enum { THREADS = 2, VALUES = 500, SHUTDOWN_MS = 1000 };

/* ---- The program ----------------------------------------------------------------------------- */

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
    uint64_t dropped = wr_losses_sum(stats.dropped);
    if (stats.faults)
        vet_fail("in a program, it violated the contract %" PRIu64 " times; WEIR_LOG=error shows how",
                 stats.faults);
    if (stats.offered + stats.recovered !=
        stats.delivered + dropped + stats.queued + stats.spooled + stats.summing)
        vet_fail("the ledger does not balance: %" PRIu64 " offered, %" PRIu64 " delivered, %" PRIu64
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

void vet_check_program(const struct vet_subject *subject)
{
    vet_program_clear_environment();
    vet_program_configure(subject, "0s", SHUTDOWN_MS);
    add_from_threads();
    flush(subject);
    vet_enter(VET_WAKE, "reloading in a program");
    weir_reload(); /* fails without a configuration file, but files are reopened */
    vet_leave();
    vet_program_configure(subject, "1ms", SHUTDOWN_MS);
    add_from_threads();
    flush(subject);
    vet_note_pass("values from several threads, a reload, a changed configuration; the ledger balances; the "
                  "program exits");
}

/* ---- Fork ------------------------------------------------------------------------------------ */

static void add_in_child(void)
{
    weir_add_value(weir_get_stream("vet.child"), "value", 1);
}

void vet_check_fork(const struct vet_subject *subject)
{
    vet_program_clear_environment();
    vet_program_configure(subject, "0s", SHUTDOWN_MS);
    add_values(NULL);
    flush(subject);
    vet_program_fork(add_in_child);
    add_values(NULL);
    flush(subject);
    vet_note_pass("a forked child adds a value and exits; the parent continues to deliver");
}
