/* mixed: a stress test of everything at once: threads that start and end, configurations that change, with
 * invalid ones in between, handlers that are slow, fail and reject. The ledger must be exact at all times, and
 * memory must not grow.
 *
 *     mixed [SECONDS [FOLDER]]
 *
 * Without arguments: a short run, limited by the number of reloads instead of seconds. Exit status: 0 success,
 * 1 failure with a message on stderr. */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../../tests/support/steady.h"

enum {
    PRODUCERS = 4,    /* concurrent threads */
    MAX_CALLS = 4000, /* per thread */
    NAMES = 50,
    SHORT_RUN = 60 /* reloads */
};

static _Atomic bool stop;
static _Atomic uint64_t started_threads;

/* xorshift64. Each thread has its own state, which must not be 0. */
static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32) % below;
}

/* ---- Handlers -------------------------------------------------------------------------------- */

enum behavior { STEADY, SLOW, FLAKY };

/* What a handler has actually delivered, for comparison with the ledger. The counts continue across reloads, as
 * the ledger's do. */
struct sink {
    const char *name;
    enum behavior behavior;
    uint64_t calls;
    _Atomic uint64_t delivered;
};

static struct sink sinks[] = {{.name = "steady"},
                              {.name = "left"},
                              {.name = "right", .behavior = SLOW},
                              {.name = "slow", .behavior = SLOW},
                              {.name = "flaky", .behavior = FLAKY}};

enum { SINKS = sizeof sinks / sizeof sinks[0] };

static void *sink_create(const weir_host *host, const void *options)
{
    (void)options;
    for (int i = 0; i < SINKS; i++)
        if (strcmp(sinks[i].name, host->name) == 0)
            return &sinks[i];
    host->refuse(host, "", "there is no such sink");
    return NULL;
}

static void sink_destroy(void *self)
{
    (void)self;
}

/* Returns the last end of an event within the first `limit` samples. */
static uint32_t find_event_end(const weir_batch *batch, uint32_t limit)
{
    while (limit && batch->samples[limit - 1].flags & WEIR_SAMPLE_MORE)
        limit--;
    return limit;
}

/* Cycles through the outcomes: it settles all, half or none of a batch, rejects a sample, or drops the rest. */
static void be_flaky(uint64_t call, const weir_batch *batch, weir_outcome *outcome)
{
    static const int codes[] = {WEIR_OUTCOME_OK, WEIR_OUTCOME_RETRY, WEIR_OUTCOME_REOPEN, WEIR_OUTCOME_OK,
                                WEIR_OUTCOME_DROP};
    outcome->code = codes[call % (sizeof codes / sizeof codes[0])];
    if (outcome->code != WEIR_OUTCOME_OK)
        outcome->done = call % 2 ? find_event_end(batch, batch->count / 2) : 0;
    outcome->rejected = outcome->done && call % 3 == 0;
    snprintf(outcome->reason, sizeof outcome->reason, "flaky");
}

static void sink_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    struct sink *sink = self;
    outcome->done = batch->count;
    if (sink->behavior == SLOW)
        steady_sleep_ms(1);
    if (sink->behavior == FLAKY)
        be_flaky(sink->calls++, batch, outcome);
    atomic_fetch_add(&sink->delivered, outcome->done - outcome->rejected);
}

static const weir_handler_type sink_type = {
    .size = sizeof sink_type,
    .abi = WEIR_ABI,
    .name = "sink",
    .summary = "counts values",
    .create = sink_create,
    .emit = sink_emit,
    .destroy = sink_destroy,
};

/* ---- Configurations -------------------------------------------------------------------------- */

/* Handlers are added, removed and changed. "swing" always goes to exactly one of left and right, "rare" always
 * to the file. %s: the file. */
static const char *const configs[] = {
    "{\"handlers\":{\"disk\":{\"type\":\"file\",\"path\":\"%s\"},\"steady\":{\"type\":\"sink\"},"
    "\"left\":{\"type\":\"sink\"},\"slow\":{\"type\":\"sink\",\"queue\":\"64KiB\",\"overflow\":\"drop_newest\"}"
    ","
    "\"flaky\":{\"type\":\"sink\",\"retry_min\":\"1ms\",\"retry_max\":\"4ms\",\"overflow\":\"drop_oldest\"}},"
    "\"groups\":{\"mixed\":\"steady\",\"mixed.swing\":\"left\",\"mixed.rare\":\"disk\","
    "\"mixed.many\":[\"inherit\",\"slow\",\"flaky\"]}}",

    "{\"settings\":{\"labels\":{\"turn\":\"two\"}},"
    "\"handlers\":{\"disk\":{\"type\":\"file\",\"path\":\"%s\"},\"steady\":{\"type\":\"sink\",\"batch\":100},"
    "\"right\":{\"type\":\"sink\"},\"flaky\":{\"type\":\"sink\",\"retry_min\":\"1ms\",\"retry_max\":\"2ms\","
    "\"overflow\":\"drop_newest\"}},"
    "\"groups\":{\"mixed\":[],\"mixed.swing\":\"right\",\"mixed.rare\":\"disk\","
    "\"mixed.many\":[\"flaky\",\"steady\"]}}",

    "{\"handlers\":{\"disk\":{\"type\":\"file\",\"path\":\"%s\"},\"steady\":{\"type\":\"sink\",\"linger\":"
    "\"3ms\"},"
    "\"left\":{\"type\":\"sink\",\"batch\":7},"
    "\"slow\":{\"type\":\"sink\",\"queue\":\"32KiB\",\"overflow\":\"drop_oldest\"}},"
    "\"groups\":{\"mixed\":\"steady\",\"mixed.swing\":\"left\",\"mixed.rare\":\"disk\","
    "\"mixed.many\":[\"slow\",\"steady\"]}}",
};

enum { CONFIGS = sizeof configs / sizeof configs[0] };

static const char *const handler_names[] = {"disk", "steady", "left", "right", "slow", "flaky"};

enum { HANDLERS = sizeof handler_names / sizeof handler_names[0] };

static void configure(unsigned turn, const char *file)
{
    char text[2048];
    int length = snprintf(text, sizeof text, configs[turn % CONFIGS], file);
    if (weir_configure_text(text, (size_t)length) != 0)
        steady_fail("configure: %s", weir_last_error());
    if (weir_configure_text("{\"groups\":{\"*\":\"absent\"}}", 25) == 0)
        steady_fail("an invalid configuration was accepted");
}

/* ---- Producers ------------------------------------------------------------------------------- */

enum group { PLAIN, SWING, RARE, MANY, GROUPS };

static const char *const groups[] = {"mixed", "mixed.swing", "mixed.rare", "mixed.many"};

/* Values whose call returned 0. */
static _Atomic uint64_t accepted[GROUPS];

/* Values of RARE are few, because their file is kept until the end. */
static enum group draw_group(uint64_t *state)
{
    uint32_t drawn = draw(state, 2000);
    return drawn == 0 ? RARE : drawn % 5 == 0 ? MANY : drawn % 2 == 0 ? SWING : PLAIN;
}

static uint64_t add_random(weir_stream *stream, uint64_t *state)
{
    static const char *const names[] = {"one", "two", "three"};
    char name[16];
    weir_value event[3];
    snprintf(name, sizeof name, "n%u", draw(state, NAMES));
    switch (draw(state, 4)) {
    case 0:
        for (int i = 0; i < 3; i++)
            event[i] = (weir_value){names[i], i};
        return weir_emit(stream, event, 3) == 0 ? 3 : 0;
    case 1: return weir_metric_add(weir_get_metric(stream, names[0]), 1) == 0;
    case 2: {
        weir_sample_spec spec = {
            .size = sizeof spec, .name = names[1], .value = 2, .cumulative = true, .metadata = "mixed"};
        return weir_add(stream, &spec) == 0;
    }
    default: return weir_add_value(stream, name, 0.5) == 0;
    }
}

static void *produce(void *argument)
{
    uint64_t state = *(uint64_t *)argument, added[GROUPS] = {0};
    weir_stream *streams[GROUPS];
    for (int i = 0; i < GROUPS; i++)
        streams[i] = weir_get_stream(groups[i]);
    for (uint32_t calls = draw(&state, MAX_CALLS); calls > 0; calls--) {
        enum group group = draw_group(&state);
        added[group] += add_random(streams[group], &state);
    }
    for (int i = 0; i < GROUPS; i++)
        atomic_fetch_add(&accepted[i], added[i]);
    return NULL;
}

/* Runs one thread after the other. */
static void *keep_producing(void *argument)
{
    uint64_t state = *(uint64_t *)argument;
    while (!atomic_load(&stop)) {
        pthread_t thread;
        draw(&state, 2);
        if (pthread_create(&thread, NULL, produce, &state) != 0)
            steady_fail("cannot create a thread: %s", strerror(errno));
        pthread_join(thread, NULL);
        atomic_fetch_add(&started_threads, 1);
    }
    return NULL;
}

/* ---- The ledger ------------------------------------------------------------------------------ */

static _Atomic uint64_t snapshots;

static void *keep_checking(void *argument)
{
    (void)argument;
    while (!atomic_load(&stop)) {
        steady_check_ledger(handler_names, HANDLERS);
        atomic_fetch_add(&snapshots, 1);
        steady_sleep_ms(5);
    }
    return NULL;
}

static uint64_t count_lines(const char *path)
{
    uint64_t lines = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        steady_fail("%s: %s", path, strerror(errno));
    for (int byte; (byte = getc_unlocked(file)) != EOF;)
        lines += byte == '\n';
    fclose(file);
    return lines;
}

static weir_handler_stats expect_delivered(const char *name, uint64_t expected)
{
    weir_handler_stats stats;
    if (!steady_read_handler(name, &stats))
        steady_fail("%s: has no counters", name);
    if (stats.queued || stats.delivered != expected)
        steady_fail("%s: delivered %" PRIu64 ", expected %" PRIu64 "; %" PRIu64 " queued", name,
                    stats.delivered, expected, stats.queued);
    printf("%-7s offered %12" PRIu64 "  delivered %12" PRIu64 "  dropped %10" PRIu64 "\n", name, stats.offered,
           stats.delivered, ledger_dropped(&stats));
    return stats;
}

/* Checks the final counts: every value has arrived at its handler. */
static weir_stats check_end(const char *file)
{
    uint64_t swing_offered = 0, sum = 0;
    weir_stats process = steady_read_process();
    for (int i = 0; i < GROUPS; i++)
        sum += atomic_load(&accepted[i]);
    if (process.added != sum || process.in_rings)
        steady_fail("added %" PRIu64 " of %" PRIu64 " accepted values, %" PRIu64 " in rings", process.added,
                    sum, process.in_rings);
    for (int i = 0; i < SINKS; i++) {
        weir_handler_stats stats = expect_delivered(sinks[i].name, atomic_load(&sinks[i].delivered));
        swing_offered +=
            strcmp(sinks[i].name, "left") == 0 || strcmp(sinks[i].name, "right") == 0 ? stats.offered : 0;
    }
    if (swing_offered != atomic_load(&accepted[SWING]))
        steady_fail("left and right were offered %" PRIu64 ", not %" PRIu64, swing_offered,
                    atomic_load(&accepted[SWING]));
    weir_handler_stats disk = expect_delivered("disk", count_lines(file));
    if (disk.delivered != atomic_load(&accepted[RARE]))
        steady_fail("disk: %" PRIu64 " of %" PRIu64 " values", disk.delivered, atomic_load(&accepted[RARE]));
    return process;
}

/* ---- The run --------------------------------------------------------------------------------- */

/* Changes the configuration until the end of the run. Returns how often. */
static unsigned reload(double seconds, const char *file, struct steady *steady)
{
    double start = steady_now_s();
    unsigned turn = 0;
    for (double progress = 0; progress < 1; turn++) {
        progress = seconds > 0 ? (steady_now_s() - start) / seconds : (double)turn / SHORT_RUN;
        configure(turn, file);
        steady_watch(steady, progress);
        steady_sleep_ms(10);
    }
    return turn;
}

static void prepare(const char *file)
{
    unlink(file);
    if (!getenv("WEIR_LOG")) /* every failure of flaky would be logged */
        setenv("WEIR_LOG", "off", 1);
    if (weir_register_handler_type(&sink_type, NULL) != 0)
        steady_fail("register handler type: %s", weir_last_error());
    for (unsigned i = 0; i < CONFIGS; i++) /* every handler has counters then, even in the shortest run */
        configure(i, file);
}

static void run(double seconds, const char *file)
{
    pthread_t producers[PRODUCERS], checker;
    uint64_t seeds[PRODUCERS];
    double start = steady_now_s();
    struct steady steady = {0};
    prepare(file);
    for (unsigned i = 0; i < PRODUCERS; i++) {
        seeds[i] = i + 1;
        if (pthread_create(&producers[i], NULL, keep_producing, &seeds[i]) != 0)
            steady_fail("cannot create a thread");
    }
    if (pthread_create(&checker, NULL, keep_checking, NULL) != 0)
        steady_fail("cannot create a thread");
    unsigned reloads = reload(seconds, file, &steady);
    atomic_store(&stop, true);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(producers[i], NULL);
    pthread_join(checker, NULL);
    int flushed = weir_flush(-1);
    if (flushed != 0 && flushed != WEIR_ERR_DROPPED)
        steady_fail("flush: %s", weir_strerror(flushed));
    double elapsed = steady_now_s() - start;
    weir_stats process = check_end(file);
    printf("%.0f s: %" PRIu64 " values (%.2f million/s), %" PRIu64 " without a handler; %" PRIu64
           " threads, %u reloads, "
           "%" PRIu64 " snapshots of the ledger, each exact; resident %ld KiB early, %ld KiB late\n",
           elapsed, process.added, (double)process.added / elapsed / 1e6, process.unrouted,
           atomic_load(&started_threads), reloads, atomic_load(&snapshots), steady.early_kb, steady.late_kb);
    steady_check_growth(&steady, seconds);
}

int main(int argc, char **argv)
{
    char file[4096];
    double seconds = argc > 1 ? atof(argv[1]) : 0;
    const char *folder = argc > 2 ? argv[2] : "/tmp";
    snprintf(file, sizeof file, "%s/weir-mixed-%ld.jsonl", folder, (long)getpid());
    run(seconds, file);
    unlink(file);
    return 0;
}
