/* Checks of several life cycles: leaks of descriptors, threads and memory, and concurrent instances. */

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
    char text[200];
    (void)probe;
    if (!vet_descriptors_check(text, sizeof text))
        vet_fail("%s %s; after close(2) set the descriptor to -1: the program may have reused the number",
                 callback, text);
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
    vet_probe_run(subject, vet_probe_live); /* libraries may open descriptors on first use and keep them */
    int before = vet_descriptors_count();
    for (int i = 0; i < LIVES; i++)
        vet_probe_run(subject, vet_probe_live);
    int left = vet_descriptors_count() - before;
    if (left > 0)
        vet_fail("%d descriptors stay open after %d life cycles: %s", left, LIVES,
                 vet_descriptors_show(3, shown, sizeof shown));
    live_guarded(subject);
    vet_pass("none stays open, and none of the program is closed or written to");
}

/* ---- Threads and processes ------------------------------------------------------------------- */

void vet_check_threads(const struct vet_subject *subject)
{
    enum { LIVES = 3 };
    vet_probe_run(subject, vet_probe_live); /* a library may start a shared thread on first use and keep it */
    int before = vet_descriptors_threads(INT_MAX);
    for (int i = 0; i < LIVES; i++)
        vet_probe_run(subject, vet_probe_live);
    int after = vet_descriptors_threads(before);
    if (after > before)
        vet_fail("%d threads still run after %d life cycles; close and destroy must end them", after - before,
                 LIVES);
    if (waitpid(-1, NULL, WNOHANG) >= 0)
        vet_fail("a child process still exists");
    vet_pass("no threads and no child processes are left");
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static size_t used_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Returns the smallest growth of memory in several runs. Memory that is allocated once and kept, such as a
 * cache, does not count; a leak in each run does. */
static size_t measure_growth(void (*run)(void *ctx), void *ctx)
{
    enum { RUNS = 5 };
    size_t least = SIZE_MAX;
    run(ctx);
    run(ctx);
    for (int i = 0; i < RUNS; i++) {
        size_t before = used_bytes();
        run(ctx);
        size_t after = used_bytes();
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
    if (!used_bytes())
        vet_skip("this allocator does not report how much memory is in use");
    size_t grown = measure_growth(live_often, (void *)(uintptr_t)subject);
    if (grown >= LIVES)
        vet_fail("about %zu bytes are leaked in each life cycle, from create to destroy", grown / LIVES);
    vet_probe_run(subject, measure_batches);
    if (growth_of_batches >= BATCHES)
        vet_fail("about %zu bytes are leaked with each batch", growth_of_batches / BATCHES);
    vet_pass("it does not grow with life cycles or batches");
}

/* ---- Concurrent instances -------------------------------------------------------------------- */

enum { INSTANCES = 4 };

static void deliver_many(struct vet_probe *probe)
{
    vet_probe_must_open(probe);
    for (uint64_t seed = 0; seed < 50; seed++)
        vet_probe_must_deliver(probe, (struct vet_recipe){.count = 20, .seed = seed, .flavour = VET_MIXED});
    vet_probe_flush(probe, 1000);
    vet_probe_close(probe);
}

static void *live_beside(void *ctx)
{
    vet_probe_on_worker(deliver_many, ctx);
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
            vet_skip("vet itself: cannot start a thread");
    for (int i = 0; i < INSTANCES; i++)
        pthread_join(threads[i], NULL);
    for (int i = INSTANCES - 1; i >= 0; i--)
        vet_probe_destroy(&probes[i]);
    vet_pass("%d with the same options, each on its own thread, at the same time", INSTANCES);
}
