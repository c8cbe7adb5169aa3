/* Checks of prepare, create and abandon, and of process-wide state around each call. */

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
    char text[400];
    if (!vet_subject_type(subject)->is.prepare)
        vet_pass("it has none");
    vet_state_take(&before);
    int descriptors = vet_descriptors_count(), threads = vet_descriptors_threads(INT_MAX);
    vet_probe_make(&probe, subject, NULL);
    vet_state_take(&after);
    if (vet_descriptors_count() > descriptors)
        vet_fail("prepare leaves descriptors open: %s", vet_descriptors_show(0, text, sizeof text));
    if (vet_descriptors_threads(threads) > threads)
        vet_fail("prepare starts threads, which a forked child would not have");
    if (vet_state_differs(&before, &after, text, sizeof text))
        vet_fail("prepare changes %s, which is the program's", text);
    vet_pass("it leaves no descriptors and no threads");
}

/* ---- Create ---------------------------------------------------------------------------------- */

static void create_and_destroy(void *ctx)
{
    struct vet_probe *probe = ctx;
    vet_probe_finish_create(probe);
    vet_probe_destroy(probe);
}

/* Exits if the monitored child has recorded a verdict. */
static void exit_if_decided(void)
{
    if (atomic_load(&vet_page->verdict))
        _exit(0);
}

static void check_side_effects(const struct vet_subject *subject)
{
    struct vet_probe probe;
    struct vet_state before, after;
    char text[400];
    vet_probe_make(&probe, subject, NULL);
    vet_state_take(&before);
    int descriptors = vet_descriptors_count(), threads = vet_descriptors_threads(INT_MAX);
    vet_probe_finish_create(&probe);
    vet_state_take(&after);
    if (vet_descriptors_count() > descriptors)
        vet_fail("create opens descriptors; only open may do this: %s",
                 vet_descriptors_show(0, text, sizeof text));
    if (vet_descriptors_threads(threads) > threads)
        vet_fail("create starts threads; only open may do this");
    if (vet_state_differs(&before, &after, text, sizeof text))
        vet_fail("create changes %s", text);
    vet_probe_destroy(&probe);
}

void vet_check_create(const struct vet_subject *subject)
{
    struct vet_probe probe;
    char text[400];
    vet_probe_make(&probe, subject, NULL);
    bool watched = vet_watch(VET_WATCH_IO, create_and_destroy, &probe, text, sizeof text);
    exit_if_decided();
    if (watched && *text)
        vet_fail("create %s; it may do no I/O: do it in open, where a failure only starts the back-off", text);
    check_side_effects(subject);
    if (!watched)
        vet_pass("it leaves no descriptors and no threads; whether it does I/O is unknown: %s", text);
    vet_pass("it does no I/O, starts no threads, and destroy succeeds");
}

/* ---- Abandon --------------------------------------------------------------------------------- */

static void abandon(void *ctx)
{
    struct vet_probe *probe = ctx;
    vet_enter(VET_ABANDON, "abandon");
    probe->type->abandon(probe->self);
    vet_leave();
}

/* Ends the check, because an abandoned handler must not be used again. The monitored call runs in a child
 * process. */
static void check_abandon(struct vet_probe *probe, int descriptors)
{
    char text[400], shown[400];
    int left = vet_descriptors_count();
    if (!probe->type->abandon && left > descriptors)
        vet_fail("it has descriptors, but no abandon: a forked child keeps them: %s",
                 vet_descriptors_show(0, text, sizeof text));
    if (!probe->type->abandon)
        vet_pass("it has none, and no descriptors either");
    bool watched = vet_watch(VET_WATCH_ALL_BUT_CLOSE, abandon, probe, text, sizeof text);
    exit_if_decided();
    if (watched && *text)
        vet_fail(
            "abandon %s; it may call close(2) and nothing else: it runs in a forked child, where other threads "
            "may have held any lock",
            text);
    abandon(probe);
    if (vet_descriptors_count() > descriptors)
        vet_fail("abandon leaves descriptors open: %s", vet_descriptors_show(0, shown, sizeof shown));
    if (!watched)
        vet_pass("it closes the descriptors that open has opened; whether it does more is unknown: %s", text);
    vet_pass("it closes the descriptors that open has opened, and does nothing else");
}

static int descriptors_before;

static void open_and_abandon(struct vet_probe *probe)
{
    vet_probe_must_open(probe);
    vet_probe_deliver(probe, (struct vet_recipe){.count = 3});
    if (!probe->open)
        vet_probe_must_open(probe);
    check_abandon(probe, descriptors_before);
}

void vet_check_abandon(const struct vet_subject *subject)
{
    struct vet_probe probe;
    vet_probe_run(subject, vet_probe_live); /* libraries may open descriptors on first use and keep them */
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
    char text[400];
    (void)probe;
    vet_state_take(&after);
    if (vet_state_differs(&before_call, &after, text, sizeof text))
        vet_fail("%s changes %s, which is the program's", callback, text);
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
    vet_pass("locale, signals and their mask, umask, working directory, environment and priority are as before "
             "each call");
}
