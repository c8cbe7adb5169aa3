/* Checks of several life cycles and batches: leaks of descriptors, threads and memory, and concurrent
 * instances. */

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "descriptors.h"
#include "growth.h"
#include "probe.h"
#include "text/common.h"
#include "watch.h"

/* ---- Descriptors ----------------------------------------------------------------------------- */

static void live_inheriting(const struct vet_subject *subject)
{
    struct vet_probe probe;
    vet_probe_make(&probe, subject, NULL);
    vet_descriptors_note();
    probe.tested.after = vet_descriptors_check_inherited;
    vet_probe_finish_create(&probe);
    vet_probe_on_worker(vet_probe_live, &probe);
    vet_probe_destroy(&probe);
}

static void live_guarded(const struct vet_subject *subject)
{
    struct vet_probe probe;
    vet_probe_make(&probe, subject, NULL);
    probe.tested.before = vet_descriptors_guard;
    probe.tested.after = vet_descriptors_check_guards;
    vet_probe_finish_create(&probe);
    vet_probe_on_worker(vet_probe_live, &probe);
    vet_probe_on_worker(vet_probe_live, &probe);
    vet_probe_destroy(&probe);
}

/* One life with many batches: what is lost with every 50th batch is not lost in a short life. */
static void live_long(struct vet_probe *probe)
{
    enum { BATCHES = 500, LEAST = 10 };
    vet_probe_must_open(probe);
    for (int i = 0; i < BATCHES && (i < LEAST || vet_has_time()); i++)
        vet_probe_must_deliver(probe, (struct vet_recipe){.count = 1});
    vet_probe_close(probe);
}

static void check_lives(const struct vet_subject *subject, void (*live)(struct vet_probe *probe), int lives,
                        const char *what)
{
    int before = vet_descriptors_count();
    for (int i = 0; i < lives; i++)
        vet_probe_run(subject, live);
    vet_descriptors_check_left(before, "%d life cycles%s", lives, what);
}

/* A handler whose destination is not available is opened again and again. */
static void fail_to_open(struct vet_probe *probe)
{
    enum { ATTEMPTS = 5 };
    int failed = 0, before = 0;
    while (failed < ATTEMPTS && !vet_probe_open(probe))
        if (failed++ == 0)
            before = vet_descriptors_count(); /* libraries may open descriptors on first use and keep them */
    if (probe->open)
        vet_probe_close(probe);
    else
        vet_descriptors_check_left(before, "%d calls of open that failed", failed - 1);
}

void vet_check_descriptors(const struct vet_subject *subject)
{
    enum { LIVES = 5 };
    vet_probe_run(subject, fail_to_open);
    vet_probe_run(subject, vet_probe_live); /* libraries may open descriptors on first use and keep them */
    live_inheriting(subject);
    check_lives(subject, vet_probe_live, LIVES, "");
    live_guarded(subject);
    check_lives(subject, live_long, 1, " with many batches");
    vet_pass("none stays open; child programs inherit none; none of the program is closed or written to");
}

/* ---- Threads ------------------------------------------------------------------- */

enum { WATCHED_BATCHES = 8 };

/* How many batches have left a thread behind that was not there before; shared with the monitored process. */
static _Atomic int *thread_count;

static void count_threads_of_batches(struct vet_probe *probe)
{
    vet_probe_must_open(probe);
    for (int i = 0; i < WATCHED_BATCHES; i++) {
        int before = vet_descriptors_newest_thread(); /* a thread of an earlier batch may be about to end */
        vet_probe_must_deliver(probe, (struct vet_recipe){.count = 3});
        atomic_fetch_add(thread_count, vet_descriptors_newest_thread() > before);
    }
    vet_probe_close(probe);
}

static void live_counted(void *ctx)
{
    vet_probe_run(ctx, count_threads_of_batches);
}

void vet_probe_check_threads(const struct vet_subject *subject)
{
    char text[200];
    thread_count = vet_watch_share(sizeof *thread_count);
    vet_watch(VET_WATCH_THREADS, live_counted, (void *)(uintptr_t)subject, text, sizeof text);
    int batches = atomic_load(thread_count);
    if (batches > WATCHED_BATCHES / 2)
        vet_fail(
            "emit leaves a thread behind with %d of %d batches; deliver in emit: the core has a thread for "
            "each handler",
            batches, WATCHED_BATCHES);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void emit_once(void *ctx)
{
    vet_probe_must_deliver(ctx, (struct vet_recipe){.count = 200, .seed = 1});
}

static size_t leaked_by_batch;

static void measure_batches(struct vet_probe *probe)
{
    enum { BATCHES = 200 };
    vet_probe_must_open(probe);
    leaked_by_batch = vet_growth_measure(emit_once, probe, BATCHES);
    vet_probe_close(probe);
}

void vet_probe_check_memory(const struct vet_subject *subject)
{
    vet_probe_run(subject, measure_batches);
    if (leaked_by_batch)
        vet_fail("about %zu bytes are leaked with each batch", leaked_by_batch);
}

/* ---- Concurrent instances -------------------------------------------------------------------- */

enum { INSTANCES = VET_PROBE_WORKERS };

static void deliver_many(struct vet_probe *probe)
{
    vet_probe_must_open(probe);
    for (uint64_t seed = 0; seed < 50 && (seed < 2 || vet_has_time()); seed++)
        vet_probe_must_deliver(probe, (struct vet_recipe){.count = 20, .seed = seed, .flavour = VET_MIXED});
    vet_probe_flush(probe, 1000);
    vet_probe_close(probe);
}

/* ---- Instances one after the other ----------------------------------------------------------- */

/* Two handlers, each on its own thread, that act in turn. */
enum { FIRST, SECOND, PAIR };

struct pair {
    struct vet_probe probes[PAIR];
    pthread_barrier_t step;
    int code;   /* of one's emit after the other was destroyed */
    int order;  /* which of them ends first */
    bool clean; /* everything before was delivered at once */
};

static void open_member(struct pair *pair, int who)
{
    vet_probe_must_open(&pair->probes[who]);
}

static void emit_to_member(struct pair *pair, int who)
{
    weir_outcome outcome = {.code = WEIR_OUTCOME_RETRY};
    struct vet_probe *probe = &pair->probes[who];
    const weir_batch *batch = vet_batches_make(
        &(struct vet_recipe){.count = 5, .kinds = probe->type->kinds, .sequence = probe->sequence});
    if (probe->open)
        vet_probe_emit(probe, batch, &outcome);
    probe->sequence += 5;
    vet_batches_end(batch);
    if (outcome.code == WEIR_OUTCOME_REOPEN || outcome.code == WEIR_OUTCOME_FAILED)
        vet_probe_close(probe);
    pair->clean = pair->clean && outcome.code == WEIR_OUTCOME_OK;
    pair->code = outcome.code;
}

static void end_member(struct pair *pair, int who)
{
    vet_probe_close(&pair->probes[who]);
    vet_probe_destroy(&pair->probes[who]);
}

static bool clean_before_end;

static void end_first(struct pair *pair, int who)
{
    clean_before_end = pair->clean;
    end_member(pair, who);
}

static const struct step {
    int who;
    void (*act)(struct pair *pair, int who);
} steps[] = {
    {FIRST, open_member},    {SECOND, open_member}, {FIRST, emit_to_member},  {SECOND, emit_to_member},
    {FIRST, emit_to_member}, {FIRST, end_first},    {SECOND, emit_to_member}, {SECOND, end_member},
};

static void act_in_turn(struct vet_probe *probe)
{
    struct pair *pair = probe->context;
    int who = (probe == &pair->probes[SECOND]) ^ pair->order;
    int self = probe == &pair->probes[SECOND];
    for (size_t i = 0; i < WR_COUNT_OF(steps); i++) {
        if (steps[i].who == who)
            steps[i].act(pair, self);
        pthread_barrier_wait(&pair->step);
    }
}

/* Returns whether one handler failed because the other one had ended: the one created first or last. */
static bool fails_apart(const struct vet_subject *subject, int order)
{
    struct pair pair = {.order = order, .clean = true};
    pthread_barrier_init(&pair.step, NULL, PAIR);
    for (int i = 0; i < PAIR; i++) {
        vet_probe_create(&pair.probes[i], subject, NULL);
        pair.probes[i].context = &pair;
    }
    vet_probe_on_workers(act_in_turn, pair.probes, PAIR);
    pthread_barrier_destroy(&pair.step);
    return clean_before_end && pair.code != WEIR_OUTCOME_OK;
}

static void check_apart(const struct vet_subject *subject)
{
    bool fails = fails_apart(subject, 0), fails_reversed = fails_apart(subject, 1);
    int before = vet_descriptors_count();
    fails = (fails_apart(subject, 0) && fails) || (fails_apart(subject, 1) && fails_reversed);
    if (fails)
        vet_fail(
            "emit of a handler fails once another handler of the type was closed and destroyed: state that "
            "belongs to each handler is static");
    vet_descriptors_check_left(
        before, "two handlers that were open at the same time: state that belongs to each handler is static");
}

void vet_check_instances(const struct vet_subject *subject)
{
    struct vet_probe probes[INSTANCES];
    for (int i = 0; i < INSTANCES; i++)
        vet_probe_create(&probes[i], subject, NULL);
    vet_probe_on_workers(deliver_many, probes, INSTANCES);
    for (int i = INSTANCES - 1; i >= 0; i--)
        vet_probe_destroy(&probes[i]);
    check_apart(subject);
    vet_pass("%d with the same options, each on its own thread, at the same time and one after the other",
             INSTANCES);
}
