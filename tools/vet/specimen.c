#include "specimen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/config.h"
#include "config/config_read.h"
#include "runtime/runtime.h"
#include "subject.h"
#include "text/error.h"
#include "thread.h"

/* ---- Outcomes -------------------------------------------------------------------------------- */

static void check_outcome(struct vet_specimen *specimen, const struct vet_fenced *fenced, const char *callback)
{
    const weir_outcome *outcome = &fenced->outcome;
    vet_fenced_check(fenced, callback);
    if (outcome->code < WEIR_OUTCOME_OK || outcome->code > WEIR_OUTCOME_FAILED ||
        outcome->code == WEIR_OUTCOME_DROP)
        vet_fail("%s returns the code %d; allowed: 0 (OK), 1 (RETRY), 2 (REOPEN) and 4 (FAILED)", callback,
                 outcome->code);
    vet_fenced_check_reason(fenced, callback);
    specimen->code = outcome->code;
    if (outcome->code != WEIR_OUTCOME_OK)
        memcpy(specimen->reason, outcome->reason, sizeof specimen->reason);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static int call(struct vet_specimen *specimen, enum vet_call which, const char *name,
                void (*callback)(void *self, weir_outcome *outcome))
{
    struct vet_fenced fenced;
    vet_fenced_init(&fenced, 0);
    vet_tested_begin(&specimen->tested);
    vet_enter(which, "%s", name);
    callback(specimen->self, &fenced.outcome);
    vet_tested_end(&specimen->tested, name);
    check_outcome(specimen, &fenced, name);
    return specimen->code;
}

void vet_specimen_probe(struct vet_specimen *specimen, int64_t timeout_ms)
{
    struct vet_fenced fenced;
    vet_fenced_init(&fenced, 0);
    vet_tested_begin(&specimen->tested);
    vet_enter(VET_PROBE, "probe with %lld ms", (long long)timeout_ms);
    specimen->type->probe(specimen->self, timeout_ms, &fenced.outcome);
    vet_tested_end(&specimen->tested, "probe");
    check_outcome(specimen, &fenced, "probe");
}

bool vet_specimen_open(struct vet_specimen *specimen)
{
    int code = specimen->type->open ? call(specimen, VET_OPEN, "open", specimen->type->open) : WEIR_OUTCOME_OK;
    atomic_store(&specimen->is_open, code == WEIR_OUTCOME_OK);
    return code == WEIR_OUTCOME_OK;
}

void vet_specimen_close(struct vet_specimen *specimen)
{
    if (specimen->type->close) {
        vet_tested_begin(&specimen->tested);
        vet_enter(VET_CLOSE, "close");
        specimen->type->close(specimen->self);
        vet_tested_end(&specimen->tested, "close");
    }
    atomic_store(&specimen->is_open, false);
}

/* ---- The thread ------------------------------------------------------------------------------ */

enum { RETRY_MS = 5, OPEN_ATTEMPTS = 20 };

static bool has_to_stop(const struct vet_specimen *specimen)
{
    return atomic_load(&specimen->stops) || atomic_load(&vet_page->stop);
}

/* As the core does, but with a short back-off. */
static bool open_with_retries(struct vet_specimen *specimen)
{
    for (int i = 0; i < OPEN_ATTEMPTS && !has_to_stop(specimen); i++) {
        if (vet_specimen_open(specimen))
            return true;
        if (specimen->code == WEIR_OUTCOME_FAILED)
            return false;
        vet_thread_sleep_ms(RETRY_MS);
    }
    return false;
}

/* Returns whether it has to be opened again. */
static bool run_open(struct vet_specimen *specimen)
{
    int code;
    while ((code = call(specimen, VET_RUN, "run", specimen->type->run)) == WEIR_OUTCOME_RETRY) {
        if (has_to_stop(specimen))
            return false;
        vet_thread_sleep_ms(RETRY_MS);
    }
    return code == WEIR_OUTCOME_REOPEN && !has_to_stop(specimen);
}

static void live(struct vet_specimen *specimen)
{
    bool again = true;
    while (again && open_with_retries(specimen)) {
        again = run_open(specimen);
        vet_specimen_close(specimen);
        if (again)
            vet_thread_sleep_ms(RETRY_MS);
    }
}

struct job {
    void (*script)(struct vet_specimen *specimen);
    struct vet_specimen *specimen;
};

static void *work(void *given)
{
    const struct job job = *(struct job *)given;
    free(given);
    atomic_store(&job.specimen->runner, pthread_self());
    job.script(job.specimen);
    atomic_store(&job.specimen->runner, 0);
    atomic_store(&job.specimen->has_ended, true);
    return NULL;
}

static void start_thread(void (*script)(struct vet_specimen *specimen), struct vet_specimen *specimen)
{
    struct job *job = malloc(sizeof *job);
    if (!job)
        vet_skip("vet itself: out of memory");
    *job = (struct job){script, specimen};
    atomic_store(&specimen->has_ended, false);
    specimen->thread = vet_thread_start(work, job);
}

void vet_specimen_on_thread(void (*script)(struct vet_specimen *specimen), struct vet_specimen *specimen)
{
    start_thread(script, specimen);
    pthread_join(specimen->thread, NULL);
}

/* ---- Waiting for it -------------------------------------------------------------------------- */

/* A run that has not ended is no call that takes too long. */
static void note_progress(void)
{
    unsigned call_now = atomic_load(&vet_page->call);
    if (call_now == VET_RUN || call_now == VET_NOTHING)
        atomic_fetch_add(&vet_page->progress, 1);
}

bool vet_specimen_await(struct vet_specimen *specimen, bool (*is_met)(const struct vet_specimen *specimen),
                        int64_t limit_ms)
{
    enum { STEP_MS = 1 };
    int64_t end_ms = vet_now_ms() + limit_ms;
    while (!is_met(specimen) && !atomic_load(&specimen->has_ended) && vet_now_ms() < end_ms) {
        note_progress();
        vet_thread_sleep_ms(STEP_MS);
    }
    return is_met(specimen);
}

static bool has_waited(const struct vet_specimen *specimen)
{
    return atomic_load(&specimen->tally.waits) || atomic_load(&specimen->tally.adds);
}

bool vet_specimen_has_added(const struct vet_specimen *specimen)
{
    return atomic_load(&specimen->tally.added);
}

static bool has_ended(const struct vet_specimen *specimen)
{
    return atomic_load(&specimen->has_ended);
}

static void wake(const struct vet_specimen *specimen)
{
    const uint64_t one = 1;
    (void)!write(specimen->wake_fd, &one, sizeof one); /* it does not block */
}

void vet_specimen_set_intake(struct vet_specimen *specimen, enum vet_intake intake)
{
    atomic_store(&specimen->intake, (int)intake);
    wake(specimen);
}

bool vet_specimen_pause(struct vet_specimen *specimen)
{
    int64_t end_ms = vet_now_ms() + vet_page->deadline_ms / 4;
    while (!has_ended(specimen) && vet_now_ms() < end_ms) {
        pthread_mutex_lock(&specimen->gate);
        if (specimen->is_waiting)
            return true;
        pthread_mutex_unlock(&specimen->gate);
        vet_thread_sleep_ms(1);
    }
    return false;
}

void vet_specimen_go_on(struct vet_specimen *specimen)
{
    pthread_mutex_unlock(&specimen->gate);
}

/* ---- Starting and stopping ------------------------------------------------------------------- */

void vet_specimen_launch(struct vet_specimen *specimen)
{
    atomic_store(&specimen->stops, false);
    memset(&specimen->tally, 0, sizeof specimen->tally);
    specimen->is_full = specimen->has_room = false;
    specimen->refused_hash = 0;
    specimen->full_in_row = specimen->same_in_row = specimen->last_mark = specimen->asked = 0;
    specimen->reason[0] = '\0';
    if (!specimen->sender.is_open)
        vet_sender_open(&specimen->sender);
    start_thread(live, specimen);
}

void vet_specimen_start(struct vet_specimen *specimen)
{
    int64_t limit_ms = vet_page->deadline_ms / 2;
    vet_specimen_launch(specimen);
    if (vet_specimen_await(specimen, has_waited, limit_ms))
        return;
    if (has_ended(specimen) && specimen->code != WEIR_OUTCOME_OK)
        vet_skip("it does not open, so nothing was checked: %s; is what it reads from available, and do "
                 "--options refer to it?",
                 *specimen->reason ? specimen->reason : "no reason was given");
    if (has_ended(specimen))
        return;
    vet_see("waiting");
    atomic_store(&vet_page->broken, atomic_load(&vet_page->call));
    if (atomic_load(&vet_page->call) != VET_RUN)
        vet_fail("%s does not return within %lld ms", vet_page->operation, (long long)limit_ms);
    vet_fail(
        "run calls neither weir_intake.wait nor add within %lld ms: wait there alone, so that a stop ends it",
        (long long)limit_ms);
}

void vet_specimen_stop(struct vet_specimen *specimen, const char *when)
{
    int64_t limit_ms = vet_page->deadline_ms / 2, end_ms = vet_now_ms() + limit_ms;
    atomic_store(&specimen->tally.stop_waits, 0);
    atomic_store(&specimen->stops, true);
    wake(specimen);
    while (!has_ended(specimen) && vet_now_ms() < end_ms)
        vet_thread_sleep_ms(1);
    if (!has_ended(specimen)) {
        atomic_store(&vet_page->broken, VET_RUN);
        vet_see("waiting");
        vet_fail(
            "%s does not return within %lld ms after a stop was requested %s; weir_intake.wait has reported "
            "it %llu times since then",
            *vet_page->operation ? vet_page->operation : "run", (long long)limit_ms, when,
            (unsigned long long)atomic_load(&specimen->tally.stop_waits));
    }
    pthread_join(specimen->thread, NULL);
    vet_sender_close(&specimen->sender);
}

/* ---- Lives ----------------------------------------------------------------------------------- */

/* vet_sender_has_ended reaps the command. */
static bool has_sent(const struct vet_specimen *specimen)
{
    return vet_sender_has_ended((struct vet_sender *)(uintptr_t)&specimen->sender);
}

static bool has_added_all(const struct vet_specimen *specimen)
{
    uint64_t least = specimen->expected ? specimen->expected : 1;
    return atomic_load(&specimen->tally.added) + atomic_load(&specimen->tally.refused) >= least;
}

/* Until nothing more comes. */
static void await_quiet(struct vet_specimen *specimen)
{
    int64_t quiet_ms = vet_page->deadline_ms / 500 + 1;
    uint64_t before, now = UINT64_MAX;
    do {
        before = now;
        vet_thread_sleep_ms(quiet_ms);
        now = atomic_load(&specimen->tally.adds);
    } while (now != before && !atomic_load(&specimen->has_ended));
}

uint64_t vet_specimen_live(struct vet_specimen *specimen)
{
    enum { UNSENT_MS = 100 };
    const struct vet_subject *subject = specimen->subject;
    vet_specimen_start(specimen);
    vet_sender_start(&specimen->sender, subject);
    vet_specimen_await(specimen, has_sent, vet_page->deadline_ms / 2);
    vet_specimen_await(specimen, has_added_all, subject->write ? vet_page->deadline_ms / 10 : UNSENT_MS);
    if (subject->write && !specimen->expected && has_added_all(specimen))
        await_quiet(specimen);
    vet_specimen_stop(specimen, "while it runs");
    return atomic_load(&specimen->tally.added);
}

uint64_t vet_specimen_whole(const struct vet_subject *subject)
{
    struct vet_specimen specimen;
    vet_specimen_create(&specimen, subject);
    uint64_t added = vet_specimen_live(&specimen);
    vet_specimen_destroy(&specimen);
    return added;
}

/* ---- Creating and destroying ----------------------------------------------------------------- */

/* The options are a document of their own, so that errors have their places in what the user wrote. */
static struct wr_source *prepare(struct vet_specimen *specimen, struct wr_error *error)
{
    static struct wr_runtime runtime; /* none of it is in use but its log, which is silent, and a lock */
    const struct vet_subject *subject = specimen->subject;
    struct wr_type *type = vet_subject_type(subject);
    struct wr_config *config = wr_config_read_text("--options", "{}", 2, NULL, error);
    const char *text = subject->options ? subject->options : "{}";
    struct wr_document *document =
        config ? wr_document_read_text("--options", text, strlen(text), error) : NULL;
    struct wr_source *source = NULL;
    if (document) {
        const struct wr_config_handler given = {
            .name = "vet",
            .type = subject->type,
            .plugin = subject->path,
            .node = document->root,
            .environment = config->environment,
            .document = document,
        };
        source = wr_source_prepare(&runtime, type, config, &given, NULL, error);
    }
    specimen->document = document;
    if (config)
        wr_config_drop(config);
    return source;
}

void vet_specimen_make(struct vet_specimen *specimen, const struct vet_subject *subject)
{
    struct wr_error error = {0};
    *specimen = (struct vet_specimen){.subject = subject, .gate = PTHREAD_MUTEX_INITIALIZER};
    specimen->source = prepare(specimen, &error);
    if (!specimen->source)
        vet_fail_to_create("%s", error.text);
    specimen->type = &specimen->source->type->source;
    specimen->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (specimen->wake_fd < 0)
        vet_skip("vet itself: eventfd: %s", strerror(errno));
    specimen->tested = (struct vet_tested){.self = &specimen->self,
                                           .kind = "source",
                                           .options = specimen->source->own_options,
                                           .table = &specimen->source->type->options};
    vet_specimen_attach(specimen);
}

bool vet_specimen_try_create(struct vet_specimen *specimen, struct wr_error *error)
{
    vet_tested_begin(&specimen->tested);
    vet_enter(VET_CREATE, "create");
    wr_source_create(specimen->source, specimen->document->root, error);
    vet_tested_end(&specimen->tested, "create");
    specimen->self = specimen->source->self;
    return specimen->self;
}

void vet_specimen_finish_create(struct vet_specimen *specimen)
{
    struct wr_error error = {0};
    if (!vet_specimen_try_create(specimen, &error))
        vet_fail_to_create("create refuses: %s", error.text);
}

void vet_specimen_create(struct vet_specimen *specimen, const struct vet_subject *subject)
{
    vet_specimen_make(specimen, subject);
    vet_specimen_finish_create(specimen);
}

void vet_specimen_destroy(struct vet_specimen *specimen)
{
    if (specimen->self) {
        vet_tested_begin(&specimen->tested);
        vet_enter(VET_DESTROY, "destroy");
        specimen->type->destroy(specimen->self);
        vet_tested_end(&specimen->tested, "destroy");
        /* a source that uses the options of another one, which is destroyed, must not find them intact */
        memset(specimen->source->own_options, 0xa5, specimen->source->type->options.struct_bytes);
    }
    vet_tested_detach(&specimen->tested);
    specimen->self = specimen->source->self = NULL;
    close(specimen->wake_fd);
    wr_source_free(specimen->source);
    wr_document_drop(specimen->document);
}
