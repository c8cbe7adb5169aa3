/* Checks of create and abandon, which may do next to nothing, and of handlers' thread_state. */

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "probe.h"
#include "subject.h"
#include "state.h"
#include "watch.h"

/* ---- Prepare --------------------------------------------------------------------------------- */

void vet_check_prepare(const struct vet_subject *subject)
{
    struct vet_probe probe;
    struct vet_state before, after;
    char words[400];
    if (!vet_subject_type(subject)->is.prepare)
        vet_pass("it has none");
    vet_state_take(&before);
    int descriptors = vet_descriptors_count(), threads = vet_descriptors_threads(INT_MAX);
    vet_probe_make(&probe, subject, NULL);
    vet_state_take(&after);
    if (vet_descriptors_count() > descriptors)
        vet_fail("prepare leaves descriptors open: %s", vet_descriptors_show(0, words, sizeof words));
    if (vet_descriptors_threads(threads) > threads)
        vet_fail("prepare starts threads, which a forked child would not have");
    if (vet_state_differs(&before, &after, words, sizeof words))
        vet_fail("prepare changes %s, which is the program's", words);
    vet_pass("it leaves no descriptors and no threads behind");
}

/* ---- Create ---------------------------------------------------------------------------------- */

static void create_and_destroy(void *ctx)
{
    struct vet_probe *probe = ctx;
    vet_probe_finish_create(probe);
    vet_probe_destroy(probe);
}

/* Whatever the child that was watched has found out. */
static void end_where_judged(void)
{
    if (atomic_load(&vet_page->verdict))
        _exit(0);
}

static void check_traces(const struct vet_subject *subject)
{
    struct vet_probe probe;
    struct vet_state before, after;
    char words[400];
    vet_probe_make(&probe, subject, NULL);
    vet_state_take(&before);
    int descriptors = vet_descriptors_count(), threads = vet_descriptors_threads(INT_MAX);
    vet_probe_finish_create(&probe);
    vet_state_take(&after);
    if (vet_descriptors_count() > descriptors)
        vet_fail("create opens descriptors, which is for open to do: %s",
                 vet_descriptors_show(0, words, sizeof words));
    if (vet_descriptors_threads(threads) > threads)
        vet_fail("create starts threads, which is for open to do");
    if (vet_state_differs(&before, &after, words, sizeof words))
        vet_fail("create changes %s", words);
    vet_probe_destroy(&probe);
}

void vet_check_create(const struct vet_subject *subject)
{
    struct vet_probe probe;
    char words[400];
    vet_probe_make(&probe, subject, NULL);
    bool watched = vet_watch(VET_WATCH_IO, create_and_destroy, &probe, words, sizeof words);
    end_where_judged();
    if (watched && *words)
        vet_fail("create %s; it may do no I/O: that is for open, where a failure only starts the back-off",
                 words);
    check_traces(subject);
    if (!watched)
        vet_pass("it leaves nothing behind; whether it does I/O is not known: %s", words);
    vet_pass("it does no I/O, starts no threads, and destroy follows well");
}

/* ---- Abandon --------------------------------------------------------------------------------- */

static void abandon(void *ctx)
{
    struct vet_probe *probe = ctx;
    vet_enter(VET_ABANDON, "abandon");
    probe->type->abandon(probe->self);
    vet_leave();
}

/* In a child of its own: what has been abandoned may not be used any more. */
static void look_at_abandon(struct vet_probe *probe, int descriptors)
{
    char words[400], shown[400];
    int left = vet_descriptors_count();
    if (!probe->type->abandon && left > descriptors)
        vet_fail("it has descriptors, but no abandon: a forked child keeps them: %s",
                 vet_descriptors_show(0, words, sizeof words));
    if (!probe->type->abandon)
        vet_pass("it has none, and no descriptors either");
    bool watched = vet_watch(VET_WATCH_ALL_BUT_CLOSE, abandon, probe, words, sizeof words);
    end_where_judged();
    if (watched && *words)
        vet_fail(
            "abandon %s; it may call close(2) and nothing else: it runs in a forked child, where other threads "
            "may have held any lock",
            words);
    abandon(probe);
    if (vet_descriptors_count() > descriptors)
        vet_fail("abandon leaves descriptors open: %s", vet_descriptors_show(0, shown, sizeof shown));
    if (!watched)
        vet_pass("it closes what open has opened; whether it does more is not known: %s", words);
    vet_pass("it closes what open has opened, and does nothing else");
}

static int descriptors_before;

static void open_and_abandon(struct vet_probe *probe)
{
    vet_probe_must_open(probe);
    vet_probe_deliver(probe, (struct vet_recipe){.count = 3});
    if (!probe->open)
        vet_probe_must_open(probe);
    look_at_abandon(probe, descriptors_before);
}

void vet_check_abandon(const struct vet_subject *subject)
{
    struct vet_probe probe;
    vet_probe_run(subject, vet_probe_live); /* libraries keep what they open first */
    vet_probe_create(&probe, subject, NULL);
    descriptors_before = vet_descriptors_count();
    vet_probe_on_worker(open_and_abandon, &probe);
}

/* ---- Manners --------------------------------------------------------------------------------- */

static _Thread_local struct vet_state before_call;

static void take_state(struct vet_probe *probe)
{
    (void)probe;
    vet_state_take(&before_call);
}

static void compare_state(struct vet_probe *probe, const char *callback)
{
    struct vet_state after;
    char words[400];
    (void)probe;
    vet_state_take(&after);
    if (vet_state_differs(&before_call, &after, words, sizeof words))
        vet_fail("%s changes %s, which is the program's", callback, words);
}

static void live_and_wake(struct vet_probe *probe)
{
    vet_probe_must_open(probe);
    vet_probe_wake(probe, WEIR_WAKE_TIMER);
    vet_probe_wake(probe, WEIR_WAKE_RELOAD);
    vet_probe_live(probe);
}

void vet_check_manners(const struct vet_subject *subject)
{
    struct vet_probe probe;
    vet_probe_make(&probe, subject, NULL);
    probe.before = take_state;
    probe.after = compare_state;
    vet_probe_finish_create(&probe);
    vet_probe_on_worker(live_and_wake, &probe);
    vet_probe_destroy(&probe);
    vet_pass("locale, signals and their mask, umask, working folder, environment and priority are as before "
             "each call");
}
