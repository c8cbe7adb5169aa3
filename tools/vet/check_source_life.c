/* Checks of a source that runs: its life, what it does without input and without room, and how it stops. */

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "descriptors.h"
#include "specimen.h"
#include "subject.h"
#include "text/common.h"
#include "thread.h"

/* Sleeps while the source runs. */
static void let_run(int64_t ms)
{
    enum { STEP_MS = 50 };
    for (; ms > 0; ms -= STEP_MS) {
        vet_thread_sleep_ms(ms < STEP_MS ? ms : STEP_MS);
        atomic_fetch_add(&vet_page->progress, 1);
    }
}

/* A source that adds nothing cannot be checked any further, with the reason why. */
static void skip_unadded(const struct vet_subject *subject, uint64_t refused)
{
    int status = vet_page->sender_status;
    const char *last = *vet_page->last_log ? "; its last message: " : "";
    if (!subject->write)
        vet_skip(
            "it adds nothing by itself, so this was not checked: give a command that sends values to it by "
            "--write%s%s",
            last, vet_page->last_log);
    vet_skip(
        "it adds nothing that the command of --write sends (status %d; lines or values refused: %llu), so this "
        "was not checked%s%s",
        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), (unsigned long long)refused, last,
        vet_page->last_log);
}

static uint64_t count_refused(const struct vet_specimen *specimen)
{
    return atomic_load(&specimen->tally.refused) + atomic_load(&specimen->source->refused) +
           atomic_load(&specimen->source->bad_lines);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void open_and_close(struct vet_specimen *specimen)
{
    if (vet_specimen_open(specimen))
        vet_specimen_close(specimen);
}

void vet_check_source_life(const struct vet_subject *subject)
{
    struct vet_specimen specimen;
    vet_specimen_create(&specimen, subject);
    vet_specimen_destroy(&specimen); /* never opened */
    vet_specimen_create(&specimen, subject);
    uint64_t added = vet_specimen_live(&specimen);
    vet_specimen_on_thread(open_and_close, &specimen);
    added += vet_specimen_live(&specimen);
    uint64_t refused = count_refused(&specimen);
    vet_specimen_destroy(&specimen);
    if (!added)
        skip_unadded(subject, refused);
    vet_pass("opened three times, and once never; %llu values were added", (unsigned long long)added);
}

/* ---- Without input --------------------------------------------------------------------------- */

enum { WATCHED_MS = 300, MOST_WAITS = 600 };

void vet_check_source_idle(const struct vet_subject *subject)
{
    struct vet_specimen specimen;
    vet_specimen_create(&specimen, subject);
    vet_specimen_start(&specimen);
    uint64_t waits = atomic_load(&specimen.tally.waits);
    let_run(WATCHED_MS);
    waits = atomic_load(&specimen.tally.waits) - waits;
    vet_specimen_stop(&specimen, "while there is nothing to read");
    vet_specimen_destroy(&specimen);
    if (waits > MOST_WAITS)
        vet_fail("run calls weir_intake.wait %llu times in %d ms, although there is nothing to read: it uses a "
                 "processor for nothing",
                 (unsigned long long)waits, WATCHED_MS);
    vet_pass("it waits, and stops");
}

/* ---- Without room ---------------------------------------------------------------------------- */

static bool is_full(const struct vet_specimen *specimen)
{
    return atomic_load(&specimen->tally.full);
}

/* What became of the values of a life. */
struct account {
    uint64_t added, refused;
};

static struct account live_counted(const struct vet_subject *subject, enum vet_intake intake, uint64_t expected)
{
    struct vet_specimen specimen;
    struct account account;
    vet_specimen_create(&specimen, subject);
    vet_specimen_set_intake(&specimen, intake);
    specimen.expected = expected;
    account.added = vet_specimen_live(&specimen);
    account.refused = count_refused(&specimen);
    vet_specimen_destroy(&specimen);
    return account;
}

/* What a source measures is replaced by the next measurement; what it was sent must not be lost. */
static void check_losses(const struct vet_subject *subject)
{
    struct account before = live_counted(subject, VET_INTAKE_TAKES, 0);
    struct account after = live_counted(subject, VET_INTAKE_IS_TIGHT, before.added);
    if (after.added + after.refused >= before.added)
        return;
    if (live_counted(subject, VET_INTAKE_TAKES, before.added).added >= before.added)
        vet_fail(
            "%llu of %llu values are lost and not counted when there is no room at first: add the same record "
            "again after the next wait",
            (unsigned long long)(before.added - after.added - after.refused), (unsigned long long)before.added);
}

void vet_check_source_full(const struct vet_subject *subject)
{
    struct vet_specimen specimen;
    vet_specimen_create(&specimen, subject);
    vet_specimen_set_intake(&specimen, VET_INTAKE_IS_FULL);
    vet_specimen_start(&specimen);
    vet_sender_start(&specimen.sender, subject);
    bool has_input = vet_specimen_await(&specimen, is_full, vet_page->deadline_ms / 4);
    let_run(WATCHED_MS / 3);
    uint64_t waits = atomic_load(&specimen.tally.waits);
    let_run(WATCHED_MS);
    waits = atomic_load(&specimen.tally.waits) - waits;
    vet_specimen_stop(&specimen, "while there is no room");
    vet_specimen_destroy(&specimen);
    if (!has_input)
        skip_unadded(subject, 0);
    if (waits > MOST_WAITS)
        vet_fail("run calls weir_intake.wait %llu times in %d ms while there is no room: wait without the "
                 "descriptors "
                 "that are not read then",
                 (unsigned long long)waits, WATCHED_MS);
    if (subject->write)
        check_losses(subject);
    vet_pass("it waits for room, adds nothing twice or never, and stops");
}

void vet_check_source_refused(const struct vet_subject *subject)
{
    struct account account = live_counted(subject, VET_INTAKE_REFUSES, 0);
    if (!account.added && !account.refused)
        skip_unadded(subject, account.refused);
    vet_pass("it goes on after records that are refused");
}

/* ---- Stopping -------------------------------------------------------------------------------- */

/* At once, in the middle of opening, and shortly after it has begun to wait. */
static void stop_early(const struct vet_subject *subject)
{
    enum { ROUNDS = 8 };
    for (int i = 0; i < ROUNDS && (i < 2 || vet_has_time()); i++) {
        struct vet_specimen specimen;
        vet_specimen_create(&specimen, subject);
        vet_specimen_launch(&specimen);
        if (i)
            vet_thread_sleep_ms(i - 1);
        vet_specimen_stop(&specimen, "soon after it was started");
        vet_specimen_destroy(&specimen);
    }
}

/* In the middle of what is sent, with marks that stay pending. */
static void stop_busy(const struct vet_subject *subject)
{
    struct vet_specimen specimen;
    vet_specimen_create(&specimen, subject);
    atomic_store(&specimen.settles_nothing, true);
    vet_specimen_start(&specimen);
    vet_sender_start(&specimen.sender, subject);
    vet_specimen_await(&specimen, vet_specimen_has_added, vet_page->deadline_ms / 4);
    vet_specimen_stop(&specimen, "while values are sent to it");
    vet_specimen_destroy(&specimen);
}

void vet_check_source_stop(const struct vet_subject *subject)
{
    stop_early(subject);
    stop_busy(subject);
    vet_pass("at once, soon after its start, and while values are sent to it that are not settled");
}

/* ---- Reload ---------------------------------------------------------------------------------- */

/* As the core does: the new instance is created while the old one runs, which ends before the new one opens. */
static void replace(const struct vet_subject *subject)
{
    struct vet_specimen old, new;
    vet_specimen_create(&old, subject);
    vet_specimen_start(&old);
    vet_specimen_create(&new, subject);
    vet_specimen_stop(&old, "for its successor");
    vet_specimen_destroy(&old);
    bool adds = vet_specimen_live(&new) || !subject->write;
    vet_specimen_destroy(&new);
    if (!adds && vet_specimen_whole(subject))
        vet_fail(
            "a source that replaces another one adds nothing: state that belongs to each source is static, or "
            "the old one has removed what the new one needs");
}

/* With equal options the new instance is destroyed, and the old one goes on. */
static void keep(const struct vet_subject *subject)
{
    struct vet_specimen old, new;
    vet_specimen_create(&old, subject);
    vet_specimen_start(&old);
    vet_specimen_create(&new, subject);
    vet_specimen_destroy(&new);
    vet_sender_start(&old.sender, subject);
    bool adds =
        vet_specimen_await(&old, vet_specimen_has_added, subject->write ? vet_page->deadline_ms / 4 : 0);
    vet_specimen_stop(&old, "after another instance was destroyed");
    vet_specimen_destroy(&old);
    if (!adds && subject->write && vet_specimen_whole(subject))
        vet_fail("a source adds nothing any more once another instance, which was never opened, was destroyed: "
                 "state "
                 "that belongs to each source is static");
}

void vet_check_source_reload(const struct vet_subject *subject)
{
    vet_specimen_whole(subject); /* it is skipped if it does not open */
    replace(subject);
    keep(subject);
    vet_pass(
        "it is replaced by another one, and goes on when one with equal options was created and destroyed");
}

/* ---- Probe ----------------------------------------------------------------------------------- */

static void probe_once(void *ctx, int64_t timeout_ms)
{
    vet_specimen_probe(ctx, timeout_ms);
}

void vet_check_source_probe(const struct vet_subject *subject)
{
    struct vet_specimen specimen;
    if (!vet_subject_type(subject)->source.probe)
        vet_pass("it has none: weir check --open does not try it");
    vet_specimen_create(&specimen, subject);
    vet_check_probe_within(probe_once, &specimen, 2000);
    vet_check_probe_within(probe_once, &specimen, 0);
    vet_specimen_destroy(&specimen);
    vet_pass("it returns within its timeout, and leaves no descriptor open");
}

/* ---- Descriptors ----------------------------------------------------------------------------- */

static void live_with(const struct vet_subject *subject, void (*before)(void),
                      void (*after)(const void *, const char *))
{
    struct vet_specimen specimen;
    vet_specimen_make(&specimen, subject);
    vet_descriptors_note();
    specimen.tested.before = before;
    specimen.tested.after = after;
    vet_specimen_finish_create(&specimen);
    vet_specimen_on_thread(open_and_close, &specimen);
    vet_specimen_on_thread(open_and_close, &specimen);
    vet_specimen_destroy(&specimen);
}

static void fail_to_open(struct vet_specimen *specimen)
{
    enum { ATTEMPTS = 5 };
    int failed = 0, before = 0;
    while (failed < ATTEMPTS && !vet_specimen_open(specimen))
        if (failed++ == 0)
            before = vet_descriptors_count(); /* libraries may open descriptors on first use and keep them */
    if (atomic_load(&specimen->is_open))
        vet_specimen_close(specimen);
    else
        vet_descriptors_check_left(before, "%d calls of open that failed", failed - 1);
}

static void run_script(const struct vet_subject *subject, void (*script)(struct vet_specimen *))
{
    struct vet_specimen specimen;
    vet_specimen_create(&specimen, subject);
    vet_specimen_on_thread(script, &specimen);
    vet_specimen_destroy(&specimen);
}

void vet_check_source_descriptors(const struct vet_subject *subject)
{
    enum { LIVES = 5 };
    run_script(subject, fail_to_open);
    vet_specimen_whole(subject); /* libraries may open descriptors on first use and keep them */
    live_with(subject, NULL, vet_descriptors_check_inherited);
    int before = vet_descriptors_count();
    for (int i = 0; i < LIVES; i++)
        vet_specimen_whole(subject);
    vet_descriptors_check_left(before, "%d life cycles", LIVES);
    live_with(subject, vet_descriptors_guard, vet_descriptors_check_guards);
    vet_pass("none stays open; child programs inherit none; none of the program is closed or written to");
}
