/* Checks of prepare, create and abandon, and of process-wide state around each call. */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/options.h"
#include "descriptors.h"
#include "probe.h"
#include "subject.h"
#include "state.h"
#include "watch.h"

static const char state_guide[] = "responsibilities-and-threads";

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
    vet_state_check(&before, &after, "prepare", false, state_guide);
    vet_pass("it leaves no descriptors and no threads");
}

/* ---- Create ---------------------------------------------------------------------------------- */

static void create_and_destroy(void *ctx)
{
    struct vet_probe *probe = ctx;
    vet_probe_finish_create(probe);
    vet_probe_destroy(probe);
}

static void check_side_effects(const struct vet_subject *subject)
{
    struct vet_probe probe;
    struct vet_state before, after;
    vet_probe_make(&probe, subject, NULL);
    vet_state_take(&before);
    int descriptors = vet_descriptors_count(), threads = vet_descriptors_threads(INT_MAX);
    vet_probe_finish_create(&probe);
    vet_state_take(&after);
    vet_descriptors_check(descriptors, 0, "create opens descriptors; only open may do this");
    if (vet_descriptors_threads(threads) > threads)
        vet_fail("create starts threads; only open may do this");
    vet_state_check(&before, &after, "create", false, state_guide);
    vet_probe_destroy(&probe);
}

void vet_check_create(const struct vet_subject *subject)
{
    struct vet_probe probe;
    char text[400];
    vet_probe_make(&probe, subject, NULL);
    bool watched = vet_watch(VET_WATCH_IO, create_and_destroy, &probe, text, sizeof text);
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

/* ---- Manners --------------------------------------------------------------------------------- */

static _Thread_local struct vet_state before_call;

static void take_state(void)
{
    vet_state_take(&before_call);
}

static bool names_standard(const char *text, int fd)
{
    static const char *const names[][3] = {{"stdout", "/dev/stdout", "-"}, {"stderr", "/dev/stderr", ""}};
    for (int i = 0; text && i < 3; i++)
        if (*text && strcmp(text, names[fd - 1][i]) == 0)
            return true;
    return false;
}

/* The option's value is one word of "stdout|stderr". */
static bool is_chosen(const weir_option *row, int64_t index, int fd)
{
    const char *wanted = fd == 1 ? "stdout" : "stderr", *word = row->allowed;
    for (; word && index > 0; index--) {
        word = strchr(word, '|');
        word += word != NULL;
    }
    return word && strncmp(word, wanted, strlen(wanted)) == 0;
}

static bool is_destination(const struct vet_probe *probe, const weir_option *row, int fd)
{
    const char *field = (const char *)probe->instance->options + row->offset;
    if (row->type == WEIR_OPTION_ENUM)
        return is_chosen(row, *(const int64_t *)(const void *)field, fd);
    bool is_text = row->type == WEIR_OPTION_STRING || row->type == WEIR_OPTION_PATH;
    return is_text && names_standard(*(const char *const *)(const void *)field, fd);
}

/* Whether the text holds the name of each sample's series. */
static bool holds_batch(const weir_batch *batch, const char *text)
{
    for (uint32_t i = 0; i < batch->count; i++)
        if (!strstr(text, weir_batch_series(batch, &batch->samples[i])->name))
            return false;
    return true;
}

static bool has_written_batch(const struct vet_probe *probe, int fd, off_t from, off_t to)
{
    size_t length = (size_t)(to - from);
    char *text = probe->batch && to > from ? malloc(length + 1) : NULL;
    ssize_t got = text ? pread(fd, text, length, from) : -1;
    if (got >= 0)
        text[got] = '\0';
    bool holds = got >= 0 && holds_batch(probe->batch, text);
    free(text);
    return holds;
}

/* A handler may write values to standard output or error if that is its destination: the option that names its
 * destination holds stdout or stderr, or there is no such option and what it writes are the values. */
static bool may_write(const struct vet_probe *probe, const char *callback, const struct vet_state *after)
{
    const weir_option *row;
    int fd = vet_state_written(&before_call, after);
    bool delivers = strcmp(callback, "emit") == 0 || strcmp(callback, "flush") == 0;
    for (size_t i = 0; (row = wr_options_row(&probe->instance->type->options, i)); i++)
        if (row->flags & WEIR_OPTION_DESTINATION)
            return delivers && is_destination(probe, row, fd);
    return has_written_batch(probe, fd, before_call.standard[fd].size, after->standard[fd].size);
}

static void compare_state(const void *ctx, const char *callback)
{
    const struct vet_probe *probe = ctx;
    struct vet_state after;
    vet_state_take(&after);
    bool is_allowed = vet_state_written(&before_call, &after) && may_write(probe, callback, &after);
    vet_state_check(&before_call, &after, callback, is_allowed, state_guide);
}

static void live_and_wake(struct vet_probe *probe)
{
    vet_probe_must_open(probe);
    vet_probe_wake(probe, WEIR_WAKE_TIMER);
    vet_probe_wake(probe, WEIR_WAKE_RELOAD);
    vet_probe_live(probe);
}

void vet_check_state(const struct vet_subject *subject)
{
    struct vet_probe probe;
    vet_probe_make(&probe, subject, NULL);
    probe.tested.before = take_state;
    probe.tested.after = compare_state;
    vet_probe_finish_create(&probe);
    vet_probe_on_worker(live_and_wake, &probe);
    vet_probe_destroy(&probe);
    vet_pass(
        "locale, signals and their mask, timers, umask, working directory, environment, priority, standard "
        "input, output and error are as before each call");
}
