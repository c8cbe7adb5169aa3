/* Checks of prepare and abandon. */

#include <limits.h>

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
    if (!vet_subject_type(subject)->is.prepare)
        vet_pass("it has none");
    vet_state_take(&before);
    int descriptors = vet_descriptors_count(), threads = vet_descriptors_threads(INT_MAX);
    vet_probe_make(&probe, subject, NULL);
    vet_state_take(&after);
    vet_descriptors_check(descriptors, 0, "prepare leaves descriptors open");
    if (vet_descriptors_threads(threads) > threads)
        vet_fail("prepare starts threads, which a forked child would not have");
    vet_state_check(&before, &after, "prepare", false, "responsibilities-and-threads");
    vet_pass("it leaves no descriptors and no threads");
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
    char text[400];
    if (!probe->type->abandon)
        vet_descriptors_check(descriptors, 0, "it has descriptors, but no abandon: a forked child keeps them");
    if (!probe->type->abandon)
        vet_pass("it has none, and no descriptors either");
    bool watched = vet_watch(VET_WATCH_ALL_BUT_CLOSE, abandon, probe, text, sizeof text);
    if (watched && *text)
        vet_fail("abandon %s; it may call close(2), fstat(2) and nothing else: it runs in a forked child, "
                 "where other "
                 "threads may have held any lock",
                 text);
    abandon(probe);
    vet_descriptors_check(descriptors, 0, "abandon leaves descriptors open");
    if (!watched)
        vet_pass("it closes the descriptors that open has opened; whether it does more is unknown: %s", text);
    vet_pass("it closes the descriptors that open has opened, and makes no other system call");
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
    descriptors_before = vet_descriptors_count();
    vet_probe_create(&probe, subject, NULL);
    vet_probe_on_worker(open_and_abandon, &probe);
}
