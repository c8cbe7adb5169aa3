/* Checks that need many lives: what stays behind after a handler, and handlers beside each other. */

#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "descriptors.h"
#include "probe.h"

/* ---- Descriptors ----------------------------------------------------------------------------- */

static void guard(struct vet_probe *probe)
{
    (void)probe;
    vet_descriptors_guard();
}

static void check_guards(struct vet_probe *probe, const char *callback)
{
    char words[200];
    (void)probe;
    if (!vet_descriptors_check(words, sizeof words))
        vet_fail("%s %s; after close(2) forget the number: the program may have got it meanwhile", callback,
                 words);
}

static void live_guarded(const struct vet_subject *subject)
{
    struct vet_probe probe;
    vet_probe_make(&probe, subject, NULL);
    probe.before = guard;
    probe.after = check_guards;
    vet_probe_finish_create(&probe);
    vet_probe_on_worker(vet_probe_live, &probe);
    vet_probe_on_worker(vet_probe_live, &probe);
    vet_probe_destroy(&probe);
}

void vet_check_descriptors(const struct vet_subject *subject)
{
    enum { LIVES = 5 };
    char shown[500];
    vet_probe_run(subject, vet_probe_live); /* libraries keep what they open first */
    int before = vet_descriptors_count();
    for (int i = 0; i < LIVES; i++)
        vet_probe_run(subject, vet_probe_live);
    int left = vet_descriptors_count() - before;
    if (left > 0)
        vet_fail("%d descriptors stay open after %d lives: %s", left, LIVES,
                 vet_descriptors_show(3, shown, sizeof shown));
    live_guarded(subject);
    vet_pass("none stays open, and none that belongs to others is closed or written to");
}

/* ---- Threads and processes ------------------------------------------------------------------- */

void vet_check_threads(const struct vet_subject *subject)
{
    enum { LIVES = 3 };
    vet_probe_run(subject,
                  vet_probe_live); /* a thread that a library shares among all is none of a handler's */
    int before = vet_descriptors_threads(INT_MAX);
    for (int i = 0; i < LIVES; i++)
        vet_probe_run(subject, vet_probe_live);
    int after = vet_descriptors_threads(before);
    if (after > before)
        vet_fail("%d threads are left behind by %d lives; close and destroy have to end them", after - before,
                 LIVES);
    if (waitpid(-1, NULL, WNOHANG) >= 0)
        vet_fail("a child process is left behind");
    vet_pass("none is left behind, nor a child process");
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static size_t count_memory(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* By how much memory grows in each of some stretches, at the least: what is kept for good once, like a cache
 * that is filled, does not count, what is lost time after time does. */
static size_t measure_growth(void (*stretch)(void *ctx), void *ctx)
{
    enum { STRETCHES = 5 };
    size_t least = SIZE_MAX;
    stretch(ctx);
    stretch(ctx);
    for (int i = 0; i < STRETCHES; i++) {
        size_t before = count_memory();
        stretch(ctx);
        size_t after = count_memory();
        size_t grown = after > before ? after - before : 0;
        least = grown < least ? grown : least;
    }
    return least;
}

enum { LIVES = 10, BATCHES = 200 };

static void live_often(void *ctx)
{
    for (int i = 0; i < LIVES; i++)
        vet_probe_run(ctx, vet_probe_live);
}

static void emit_often(void *ctx)
{
    struct vet_probe *probe = ctx;
    for (int i = 0; i < BATCHES; i++)
        vet_probe_must_deliver(probe, (struct vet_recipe){.count = 20, .seed = 1});
}

static size_t growth_of_batches;

static void measure_batches(struct vet_probe *probe)
{
    vet_probe_must_open(probe);
    growth_of_batches = measure_growth(emit_often, probe);
    vet_probe_close(probe);
}

void vet_check_memory(const struct vet_subject *subject)
{
    if (!count_memory())
        vet_skip("this allocator does not tell how much is in use");
    size_t grown = measure_growth(live_often, (void *)(uintptr_t)subject);
    if (grown >= LIVES)
        vet_fail("about %zu bytes are lost with each life, from create to destroy", grown / LIVES);
    vet_probe_run(subject, measure_batches);
    if (growth_of_batches >= BATCHES)
        vet_fail("about %zu bytes are lost with each batch", growth_of_batches / BATCHES);
    vet_pass("as much is in use after many lives, and after many batches, as before");
}

/* ---- Several at once ------------------------------------------------------------------------- */

enum { INSTANCES = 4 };

static void deliver_much(struct vet_probe *probe)
{
    vet_probe_must_open(probe);
    for (uint64_t seed = 0; seed < 50; seed++)
        vet_probe_must_deliver(probe, (struct vet_recipe){.count = 20, .seed = seed, .flavour = VET_MIXED});
    vet_probe_flush(probe, 1000);
    vet_probe_close(probe);
}

static void *live_beside(void *ctx)
{
    vet_probe_on_worker(deliver_much, ctx);
    return NULL;
}

void vet_check_instances(const struct vet_subject *subject)
{
    struct vet_probe probes[INSTANCES];
    pthread_t threads[INSTANCES];
    for (int i = 0; i < INSTANCES; i++)
        vet_probe_create(&probes[i], subject, NULL);
    for (int i = 0; i < INSTANCES; i++)
        if (pthread_create(&threads[i], NULL, live_beside, &probes[i]) != 0)
            vet_skip("vet itself: no thread");
    for (int i = 0; i < INSTANCES; i++)
        pthread_join(threads[i], NULL);
    for (int i = INSTANCES - 1; i >= 0; i--)
        vet_probe_destroy(&probes[i]);
    vet_pass("%d with the same options, each on a thread of its own, at the same time", INSTANCES);
}
