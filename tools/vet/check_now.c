/* The check of emit_now, which the core calls on threads of the program. */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "lane/lane_worker.h"
#include "probe.h"
#include "subject.h"
#include "vet.h"
#include "watch.h"

enum {
    STACK_BYTES = 256 * 1024,
    STACK_ALLOWED = 8 * 1024,
    PAINT = 0x5a,
    BATCHES = 20,
};

/* The results of a call on another thread or in another process. */
struct now {
    struct vet_probe *probe;
    const weir_batch *batch;
    weir_outcome outcome;
    unsigned char *stack; /* its thread's, painted */
    size_t depth;         /* how many bytes of it emit_now has used */
};

/* ---- Calling --------------------------------------------------------------------------------- */

/* The core makes an outcome as for emit, and its encoder must not allocate. */
static void call(struct now *now)
{
    struct vet_probe *probe = now->probe;
    struct wr_encoder *encoder = &probe->instance->encoder;
    wr_lane_worker_init_outcome(&now->outcome, WR_DONE_BY_CODE);
    wr_encoder_begin(encoder);
    wr_encoder_set_fixed(encoder, true);
    probe->batch = now->batch;
    vet_enter(VET_EMIT, "emit_now of %u samples", now->batch->count);
    probe->type->emit_now(probe->self, now->batch, &now->outcome);
    wr_lane_worker_set_done(&now->outcome, now->batch->count);
    vet_leave();
    probe->batch = NULL;
    wr_encoder_set_fixed(encoder, false);
}

static void check(const weir_outcome *outcome, uint32_t count)
{
    if (outcome->code < WEIR_OUTCOME_OK || outcome->code > WEIR_OUTCOME_NOT_NOW)
        vet_fail("emit_now returns the code %d; allowed: 0 (OK) to 5 (NOT_NOW)", outcome->code);
    if (outcome->done > count || outcome->rejected > outcome->done)
        vet_fail("emit_now returns done %u and rejected %u of a batch of %u samples", outcome->done,
                 outcome->rejected, count);
    if (outcome->code == WEIR_OUTCOME_OK && count && !outcome->done)
        vet_fail("emit_now returns OK with nothing done; where the worker has to deliver it returns NOT_NOW");
    bool failed = outcome->code != WEIR_OUTCOME_OK && outcome->code != WEIR_OUTCOME_NOT_NOW;
    if (failed && !*outcome->reason)
        vet_fail("emit_now returns the code %d without a reason: set outcome->reason", outcome->code);
}

/* ---- The stack ------------------------------------------------------------------------------- */

static void *call_on_stack(void *argument)
{
    struct now *now = argument;
    unsigned char *top = __builtin_frame_address(0);
    call(now);
    unsigned char *lowest = now->stack;
    while (lowest < top && *lowest == PAINT)
        lowest++;
    now->depth = (size_t)(top - lowest);
    return NULL;
}

/* Calls emit_now on a thread of its own, and measures how much of its stack it uses. */
static void call_measured(struct now *now)
{
    pthread_t thread;
    pthread_attr_t attributes;
    void *stack =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        vet_skip("out of memory");
    memset(stack, PAINT, STACK_BYTES);
    now->stack = stack;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, STACK_BYTES);
    if (pthread_create(&thread, &attributes, call_on_stack, now) != 0)
        vet_skip("a thread cannot be started");
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    munmap(stack, STACK_BYTES);
}

/* ---- The check ------------------------------------------------------------------------------- */

static void call_watched(void *now)
{
    call(now);
}

static uint32_t delivered_now;

/* The worker's emit comes first, as in the core, and delivers what emit_now leaves. */
static void deliver_now(struct vet_probe *probe)
{
    char text[400];
    vet_probe_must_open(probe);
    vet_probe_must_deliver(probe, (struct vet_recipe){.count = 3, .event = 3});
    for (uint64_t i = 0; i < BATCHES && (i < 2 || vet_has_time()) && probe->open; i++) {
        struct now now = {.probe = probe};
        struct vet_recipe recipe = {
            .count = 3, .event = 3, .kinds = probe->type->kinds, .sequence = probe->sequence};
        probe->sequence += recipe.count;
        now.batch = vet_batches_make(&recipe);
        if (i == 0) {
            bool watched = vet_watch(VET_WATCH_NOW, call_watched, &now, text, sizeof text);
            if (watched && *text)
                vet_fail("emit_now %s: it runs on a thread of the program, maybe in a signal handler, and may "
                         "neither wait nor allocate; return WEIR_OUTCOME_NOT_NOW instead",
                         text);
        }
        call_measured(&now);
        check(&now.outcome, recipe.count);
        if (now.depth > STACK_ALLOWED)
            vet_fail("emit_now uses %zu bytes of stack; allowed: %d", now.depth, STACK_ALLOWED);
        delivered_now += now.outcome.done;
        vet_batches_end(now.batch);
        if (now.outcome.done < recipe.count)
            vet_probe_must_deliver(probe, (struct vet_recipe){.count = recipe.count, .event = recipe.count});
    }
    vet_probe_close(probe);
}

void vet_check_now(const struct vet_subject *subject)
{
    if (!vet_subject_type(subject)->is.emit_now)
        vet_pass("it has no emit_now");
    vet_probe_run(subject, deliver_now);
    vet_pass("it does not wait, and uses at most %d KiB of stack; %u samples delivered", STACK_ALLOWED / 1024,
             delivered_now);
}
