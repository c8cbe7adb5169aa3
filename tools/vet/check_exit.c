/* The check of a program that exits while the handler is being opened. */

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include <weir/weir.h>

#include "os/clock.h"
#include "program.h"

/* Measures how long the first value takes to be delivered. The exit may take half of the deadline after it. */
static void add_and_flush(void *ctx, struct vet_ledger *ledger)
{
    const struct vet_subject *subject = ctx;
    int64_t begin_ns = wr_clock_monotonic_ns();
    weir_add_value(weir_get_stream("vet.exit"), "value", 1);
    weir_flush(subject->deadline_ms / 4);
    ledger->elapsed_us = (wr_clock_monotonic_ns() - begin_ns) / 1000;
}

/* Returns after the delay; the program then exits. */
static void add_and_return(void *ctx, struct vet_ledger *ledger)
{
    const int64_t *delay_us = ctx;
    (void)ledger;
    weir_add_value(weir_get_stream("vet.exit"), "value", 1);
    const struct timespec delay = {*delay_us / 1000000, *delay_us % 1000000 * 1000};
    nanosleep(&delay, NULL);
}

static void exit_after(const struct vet_subject *subject, int64_t delay_us)
{
    vet_enter(VET_OPEN, "a program that exits %.1f ms after its first value", (double)delay_us / 1000);
    struct vet_ledger ledger = vet_program_run(subject, add_and_return, &delay_us);
    vet_leave();
    if (WIFSIGNALED(ledger.status)) {
        vet_see("create");
        vet_fail(
            "a program that exits %.1f ms after its first value, while the handler is being opened, is killed "
            "by %s: what open uses must outlive exit handlers; initialize libraries in prepare",
            (double)delay_us / 1000, strsignal(WTERMSIG(ledger.status)));
    }
    if (ledger.status || !ledger.known)
        vet_fail("a program that exits %.1f ms after its first value ends with status %d",
                 (double)delay_us / 1000, WEXITSTATUS(ledger.status));
    if (ledger.offered && !ledger.delivered)
        vet_fail(
            "the value of a program that exits %.1f ms after it was added is lost, although the destination is "
            "available and %lld ms are left: when a stop is requested, finish within remaining_ms",
            (double)delay_us / 1000, (long long)subject->deadline_ms / 2);
}

void vet_check_exit(const struct vet_subject *subject)
{
    static const int eighths[] = {0, 4, 1, 6, 2, 7, 3, 5};
    enum { LEAST = 3, ROUNDS = 2 };
    vet_enter(VET_OPEN, "a program with it");
    struct vet_ledger ledger = vet_program_run(subject, add_and_flush, (void *)(uintptr_t)subject);
    vet_leave();
    if (WIFSIGNALED(ledger.status))
        vet_fail("a program that exits after its first value was delivered is killed by %s",
                 strsignal(WTERMSIG(ledger.status)));
    if (!ledger.known || !ledger.delivered || ledger.elapsed_us / 1000 >= subject->deadline_ms / 4)
        vet_skip("the first value of a program is not delivered in time, so nothing was checked");
    int count = (int)(sizeof eighths / sizeof *eighths);
    for (int i = 0; i < ROUNDS * count && (i < LEAST || vet_has_time()); i++)
        exit_after(subject, ledger.elapsed_us * eighths[i % count] / 8);
    vet_pass(
        "a program that exits before, while and after the handler is opened ends, and its value is delivered");
}
