#include "probe.h"

#include <stdio.h>
#include <string.h>

#include "lane/lane_worker.h"
#include "text/common.h"
#include "text/error.h"
#include "services.h"
#include "subject.h"
#include "thread.h"

/* ---- Outcomes -------------------------------------------------------------------------------- */

static void check_code(const weir_outcome *outcome, const char *callback)
{
    if (outcome->code < WEIR_OUTCOME_OK || outcome->code > WEIR_OUTCOME_FAILED)
        vet_fail("%s returns the code %d; allowed: 0 (OK) to 4 (FAILED)", callback, outcome->code);
    if (outcome->retry_after_ms < 0)
        vet_fail("%s returns retry_after_ms %lld; allowed: 0 and more", callback,
                 (long long)outcome->retry_after_ms);
    if (outcome->error > 0 || outcome->error < -UINT16_MAX)
        vet_fail("%s returns the error %d, which is none of enum weir_error", callback, outcome->error);
}

static void check_reason(const struct vet_probe *probe, const struct vet_fenced *fenced, const char *callback)
{
    vet_fenced_check_reason(fenced, callback);
    vet_tested_check_text(&probe->tested, "the reason of an outcome", fenced->outcome.reason);
}

static void check_counts(const weir_outcome *outcome, uint32_t count)
{
    if (outcome->done > count)
        vet_fail("emit returns done %u of a batch of %u samples", outcome->done, count);
    if (outcome->rejected > outcome->done)
        vet_fail("emit returns rejected %u of done %u; rejected samples are among those done",
                 outcome->rejected, outcome->done);
    if (outcome->code == WEIR_OUTCOME_OK && count && !outcome->done)
        vet_fail("emit returns OK with nothing done: the core would call it again forever");
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static int check_outcome(struct vet_probe *probe, const struct vet_fenced *fenced, const char *callback)
{
    const weir_outcome *outcome = &fenced->outcome;
    vet_tested_end(&probe->tested, callback);
    vet_fenced_check(fenced, callback);
    check_code(outcome, callback);
    check_reason(probe, fenced, callback);
    if (*outcome->reason)
        memcpy(probe->reason, outcome->reason, sizeof probe->reason);
    return outcome->code;
}

bool vet_probe_open(struct vet_probe *probe)
{
    struct vet_fenced fenced;
    int code = WEIR_OUTCOME_OK;
    if (probe->type->open) {
        vet_fenced_init(&fenced, 0);
        vet_tested_begin(&probe->tested);
        vet_enter(VET_OPEN, "open");
        probe->type->open(probe->self, &fenced.outcome);
        code = check_outcome(probe, &fenced, "open");
    }
    probe->open = code == WEIR_OUTCOME_OK;
    return probe->open;
}

void vet_probe_close(struct vet_probe *probe)
{
    if (probe->open && probe->type->close) {
        vet_tested_begin(&probe->tested);
        vet_enter(VET_CLOSE, "close");
        probe->type->close(probe->self);
        vet_tested_end(&probe->tested, "close");
    }
    probe->open = false;
}

int vet_probe_flush(struct vet_probe *probe, int64_t timeout_ms)
{
    struct vet_fenced fenced;
    if (!probe->type->flush)
        return WEIR_OUTCOME_OK;
    vet_fenced_init(&fenced, 0);
    vet_tested_begin(&probe->tested);
    vet_enter(VET_FLUSH, "flush with %lld ms", (long long)timeout_ms);
    probe->type->flush(probe->self, timeout_ms, &fenced.outcome);
    return check_outcome(probe, &fenced, "flush");
}

void vet_probe_wake(struct vet_probe *probe, int why)
{
    struct vet_fenced fenced;
    if (!probe->type->wake)
        return;
    vet_fenced_init(&fenced, 0);
    vet_tested_begin(&probe->tested);
    vet_enter(VET_WAKE, "wake for a %s", why == WEIR_WAKE_TIMER ? "timer" : "reload");
    probe->type->wake(probe->self, why, &fenced.outcome);
    check_outcome(probe, &fenced, "wake");
}

void vet_probe_emit(struct vet_probe *probe, const weir_batch *batch, weir_outcome *outcome)
{
    struct vet_fenced fenced;
    uint32_t count = batch->count;
    vet_fenced_init(&fenced, WR_DONE_BY_CODE);
    if (probe->instance->format)
        wr_encoder_begin(&probe->instance->encoder);
    vet_tested_begin(&probe->tested);
    probe->batch = batch;
    vet_enter(VET_EMIT, "emit of %u samples", count);
    probe->type->emit(probe->self, batch, &fenced.outcome);
    check_outcome(probe, &fenced, "emit");
    probe->batch = NULL;
    wr_lane_worker_set_done(&fenced.outcome, count);
    check_counts(&fenced.outcome, count);
    *outcome = fenced.outcome;
}

/* ---- Delivering as the core does ------------------------------------------------------------- */

enum { MAX_ATTEMPTS = 20, RETRY_DELAY_MS = 5 };

int vet_probe_probe(struct vet_probe *probe, int64_t timeout_ms)
{
    struct vet_fenced fenced;
    vet_fenced_init(&fenced, 0);
    vet_tested_begin(&probe->tested);
    vet_enter(VET_PROBE, "probe with %lld ms", (long long)timeout_ms);
    probe->type->probe(probe->self, timeout_ms, &fenced.outcome);
    return check_outcome(probe, &fenced, "probe");
}

/* Rounds down to whole events. */
static uint32_t round_down(const weir_batch *batch, uint32_t done)
{
    while (done && done < batch->count && batch->samples[done - 1].flags & WEIR_SAMPLE_MORE)
        done--;
    return done;
}

/* Attempts may take long, for example until a connection times out. */
static bool may_try(int failures, int64_t last_success_ms)
{
    return failures < MAX_ATTEMPTS &&
           (failures < 2 || (vet_now_ms() - last_success_ms) * 2 < vet_page->deadline_ms);
}

/* Returns false if it cannot be opened. */
static bool open_with_retries(struct vet_probe *probe)
{
    int64_t begin_ms = vet_now_ms();
    for (int attempts = 0; !probe->open && may_try(attempts, begin_ms) && !atomic_load(&vet_page->stop);
         attempts++)
        if (!vet_probe_open(probe))
            vet_thread_sleep_ms(RETRY_DELAY_MS);
    return probe->open;
}

/* Ends the batch and returns a new one with the remaining samples; NULL if there are none. */
static const weir_batch *advance(const weir_batch *batch, uint32_t done)
{
    const weir_batch *rest = done < batch->count ? vet_batches_rest(batch, done) : NULL;
    vet_batches_end(batch);
    return rest;
}

/* Returns whether all of it is settled, and the handler goes on. */
static bool deliver(struct vet_probe *probe, const weir_batch *batch)
{
    int failures = 0;
    bool finished = false;
    int64_t last_success_ms = vet_now_ms();
    while (batch && !finished && may_try(failures, last_success_ms) &&
           !(failures && atomic_load(&vet_page->stop)) && open_with_retries(probe)) {
        weir_outcome outcome;
        vet_probe_emit(probe, batch, &outcome);
        uint32_t done = round_down(batch, outcome.done);
        bool dropped = outcome.code == WEIR_OUTCOME_DROP;
        uint32_t rejected = outcome.rejected < done ? outcome.rejected : done;
        probe->delivered += done - rejected;
        probe->rejected += rejected + (dropped ? batch->count - done : 0);
        probe->repeated += dropped ? 0 : batch->count - done;
        batch = advance(batch, dropped ? batch->count : done);
        failures = done || dropped ? 0 : failures + 1;
        last_success_ms = failures ? last_success_ms : vet_now_ms();
        finished = outcome.code == WEIR_OUTCOME_FAILED;
        if (outcome.code == WEIR_OUTCOME_REOPEN)
            vet_probe_close(probe);
        if (failures)
            vet_thread_sleep_ms(RETRY_DELAY_MS);
    }
    if (batch)
        vet_batches_end(batch);
    return !batch && !finished;
}

bool vet_probe_deliver(struct vet_probe *probe, struct vet_recipe recipe)
{
    recipe.kinds = probe->type->kinds;
    recipe.sequence = probe->sequence;
    probe->sequence += recipe.count;
    return deliver(probe, vet_batches_make(&recipe));
}

static _Noreturn void skip_undelivered(const struct vet_probe *probe, const char *what)
{
    vet_skip("%s, so nothing was checked: %s; is the destination available, and do --options refer to it?",
             what, *probe->reason ? probe->reason : "it waited until a stop was requested");
}

void vet_probe_must_open(struct vet_probe *probe)
{
    if (!open_with_retries(probe))
        skip_undelivered(probe, "it does not open");
}

void vet_probe_must_deliver(struct vet_probe *probe, struct vet_recipe recipe)
{
    if (!vet_probe_deliver(probe, recipe))
        skip_undelivered(probe, "it accepts no samples");
}

void vet_probe_live(struct vet_probe *probe)
{
    vet_probe_must_open(probe);
    for (uint32_t i = 1; i <= 3 && (i == 1 || vet_has_time()); i++)
        vet_probe_must_deliver(probe, (struct vet_recipe){.count = 40 * i, .seed = i});
    vet_probe_flush(probe, 1000);
    vet_probe_close(probe);
}

/* ---- Creating and destroying ----------------------------------------------------------------- */

void vet_probe_make(struct vet_probe *probe, const struct vet_subject *subject, const char *format)
{
    struct wr_error error = {0};
    *probe = (struct vet_probe){.subject = subject};
    probe->instance = vet_subject_instance(subject, format, &error);
    if (!probe->instance)
        vet_fail_to_create("%s", error.text);
    probe->type = &probe->instance->type->is;
    vet_enter(VET_PREPARE, "prepare");
    if (!wr_instance_prepare(probe->instance, &error))
        vet_fail_to_create("prepare refuses: %s", error.text);
    vet_leave();
    probe->tested = (struct vet_tested){.self = &probe->self,
                                        .kind = "handler",
                                        .options = probe->instance->options,
                                        .table = &probe->instance->type->options};
    vet_services_attach(probe);
}

void vet_probe_finish_create(struct vet_probe *probe)
{
    struct wr_error error;
    vet_tested_begin(&probe->tested);
    vet_enter(VET_CREATE, "create");
    wr_instance_create(probe->instance, &error);
    vet_tested_end(&probe->tested, "create");
    probe->self = probe->instance->self;
    if (!probe->self)
        vet_fail_to_create("create refuses: %s", error.text);
}

void vet_probe_create(struct vet_probe *probe, const struct vet_subject *subject, const char *format)
{
    vet_probe_make(probe, subject, format);
    vet_probe_finish_create(probe);
}

void vet_probe_destroy(struct vet_probe *probe)
{
    vet_tested_begin(&probe->tested);
    vet_enter(VET_DESTROY, "destroy");
    probe->type->destroy(probe->self);
    vet_tested_end(&probe->tested, "destroy");
    vet_tested_detach(&probe->tested);
    /* a handler that uses the options of another one, which is destroyed, must not find them intact */
    memset(probe->instance->options, 0xa5, probe->instance->type->options.struct_bytes);
    probe->instance->self = NULL;
    wr_instance_free(probe->instance);
}

/* ---- Workers --------------------------------------------------------------------------------- */

struct job {
    void (*script)(struct vet_probe *probe);
    struct vet_probe *probe;
};

static void *work(void *given)
{
    const struct job *job = given;
    job->script(job->probe);
    return NULL;
}

void vet_probe_on_workers(void (*script)(struct vet_probe *probe), struct vet_probe *probes, int count)
{
    struct job jobs[VET_PROBE_WORKERS];
    pthread_t threads[VET_PROBE_WORKERS];
    for (int i = 0; i < count; i++) {
        jobs[i] = (struct job){script, &probes[i]};
        threads[i] = vet_thread_start(work, &jobs[i]);
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

void vet_probe_on_worker(void (*script)(struct vet_probe *probe), struct vet_probe *probe)
{
    vet_probe_on_workers(script, probe, 1);
}

void vet_probe_run(const struct vet_subject *subject, void (*script)(struct vet_probe *probe))
{
    struct vet_probe probe;
    vet_probe_create(&probe, subject, NULL);
    vet_probe_on_worker(script, &probe);
    vet_probe_destroy(&probe);
}
