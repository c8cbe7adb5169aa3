/* Checks that are the same for handlers and sources: of create, of process-wide state around each call, and of
 * what several life cycles leave behind. */

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/options.h"
#include "descriptors.h"
#include "growth.h"
#include "probe.h"
#include "specimen.h"
#include "state.h"
#include "watch.h"

/* A handler or a source under test; its first member is the struct vet_tested of either. */
struct either {
    union {
        struct vet_tested tested;
        struct vet_probe probe;
        struct vet_specimen specimen;
    };
    bool is_source;
};

static void make(struct either *either, const struct vet_subject *subject)
{
    either->is_source = subject->is_source;
    if (either->is_source)
        vet_specimen_make(&either->specimen, subject);
    else
        vet_probe_make(&either->probe, subject, NULL);
}

static void finish_create(struct either *either)
{
    if (either->is_source)
        vet_specimen_finish_create(&either->specimen);
    else
        vet_probe_finish_create(&either->probe);
}

static void destroy(struct either *either)
{
    if (either->is_source)
        vet_specimen_destroy(&either->specimen);
    else
        vet_probe_destroy(&either->probe);
}

static void live(const struct vet_subject *subject)
{
    if (subject->is_source)
        vet_specimen_whole(subject);
    else
        vet_probe_run(subject, vet_probe_live);
}

/* ---- Create ---------------------------------------------------------------------------------- */

static void create_and_destroy(void *made)
{
    finish_create(made);
    destroy(made);
}

static void check_side_effects(const struct vet_subject *subject)
{
    struct either either;
    struct vet_state before, after;
    make(&either, subject);
    vet_state_take(&before);
    int descriptors = vet_descriptors_count(), threads = vet_descriptors_threads(INT_MAX);
    finish_create(&either);
    vet_state_take(&after);
    vet_descriptors_check(descriptors, 0, "create opens descriptors; only open may do this");
    if (vet_descriptors_threads(threads) > threads)
        vet_fail("create starts threads; only open may do this");
    vet_state_check(&before, &after, "create", false,
                    subject->is_source ? NULL : "responsibilities-and-threads");
    destroy(&either);
}

void vet_check_create(const struct vet_subject *subject)
{
    struct either either;
    char text[400];
    make(&either, subject);
    bool watched = vet_watch(VET_WATCH_IO, create_and_destroy, &either, text, sizeof text);
    if (watched && *text)
        vet_fail("create %s; it may do no I/O: do it in open, where a failure only starts the back-off", text);
    check_side_effects(subject);
    if (!watched)
        vet_pass("it leaves no descriptors and no threads; whether it does I/O is unknown: %s", text);
    vet_pass("it does no I/O, starts no threads, and destroy succeeds");
}

/* ---- The program's state --------------------------------------------------------------------- */

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

static void compare_state(const void *tested, const char *callback)
{
    const struct either *either = tested;
    struct vet_state after;
    vet_state_take(&after);
    bool is_allowed = !either->is_source && vet_state_written(&before_call, &after) &&
                      may_write(&either->probe, callback, &after);
    vet_state_check(&before_call, &after, callback, is_allowed, NULL);
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
    struct either either;
    make(&either, subject);
    either.tested.before = take_state;
    either.tested.after = compare_state;
    finish_create(&either);
    if (either.is_source && either.specimen.source->breach) /* the core has reverted it */
        vet_fail("create: %s, which is the program's", either.specimen.source->breach);
    if (either.is_source)
        vet_specimen_live(&either.specimen);
    else
        vet_probe_on_worker(live_and_wake, &either.probe);
    destroy(&either);
    vet_pass(
        "locale, signals and their mask, timers, umask, working directory, environment, priority, standard "
        "input, output and error are as before each call");
}

/* ---- Threads and processes ------------------------------------------------------------------- */

void vet_check_threads(const struct vet_subject *subject)
{
    enum { LIVES = 3 };
    live(subject); /* a library may start a shared thread on first use and keep it */
    int before = vet_descriptors_threads(INT_MAX);
    for (int i = 0; i < LIVES; i++)
        live(subject);
    int after = vet_descriptors_threads(before);
    if (after > before)
        vet_fail("%d threads still run after %d life cycles; close and destroy must end them", after - before,
                 LIVES);
    if (waitpid(-1, NULL, WNOHANG) >= 0)
        vet_fail("a child process still exists");
    if (!subject->is_source)
        vet_probe_check_threads(subject);
    vet_pass("no threads and no child processes are left");
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void live_once(void *subject)
{
    live(subject);
}

void vet_check_memory(const struct vet_subject *subject)
{
    enum { LIVES = 10 };
    if (!vet_growth_is_known())
        vet_skip("this allocator does not report how much memory is in use");
    size_t leaked = vet_growth_measure(live_once, (void *)(uintptr_t)subject, LIVES);
    if (leaked)
        vet_fail("about %zu bytes are leaked in each life cycle, from create to destroy", leaked);
    if (subject->is_source)
        vet_pass("it does not grow with life cycles");
    vet_probe_check_memory(subject);
    vet_pass("it does not grow with life cycles or batches");
}
