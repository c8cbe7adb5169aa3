/* soak: mixed load for a given time, while soak.py injects faults from outside. Threads start and end,
 * children are forked, valid and invalid configurations are read, handlers are slow, fail and recover. The
 * ledger must be exact at all times, and memory and descriptors must not grow.
 *
 * usage: soak SECONDS FOLDER
 *
 * FOLDER contains valid.0.json, valid.1.json, ... and wrong.0.json, ... Exit status: 0 success, 1 failure,
 * with a message on stderr, 2 usage error. The last lines on stdout, for soak.py, are the values that the
 * file, the server and the pipe must have received from this process and its children. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <weir/handler.h>

#include "../support/plain.h"
#include "../support/steady.h"

enum {
    PRODUCERS = 4, /* threads at a time; each makes up to MAX_CALLS calls */
    MAX_CALLS = 3000,
    PAUSE_EVERY = 8, /* pause after so many calls: load, not a race */
    CHILD_CALLS = 200,
    VALID = 3,
    WRONG = 2,
};

static const char *const groups[] = {"soak.disk", "soak.push", "soak.pipe", "soak.many"};
static const char *const handler_names[] = {"disk", "push", "pipe", "slow", "flaky"};

enum { GROUPS = sizeof groups / sizeof groups[0], HANDLERS = sizeof handler_names / sizeof handler_names[0] };
enum { FIRST_SINK = 3 /* slow and flaky are implemented in this program */ };

static atomic_bool over;
static _Atomic uint64_t threads_started, snapshots, reloads, refused_configs, accepted[GROUPS];
static const char *folder;

/* Shared memory: what children have delivered to the handlers, and how many have ended. */
static struct children {
    _Atomic uint64_t forked, ended, delivered[HANDLERS];
} * children;

/* ---- Handlers -------------------------------------------------------------------------------- */

/* The values that each handler of this program has accepted. */
static _Atomic uint64_t taken[HANDLERS];

static void *sink_create(const weir_host *host, const void *options)
{
    static const int numbers[HANDLERS] = {0, 1, 2, 3, 4};
    (void)options;
    for (int i = FIRST_SINK; i < HANDLERS; i++)
        if (strcmp(host->name, handler_names[i]) == 0)
            return (void *)&numbers[i];
    host->refuse(host, "", "unknown sink");
    return NULL;
}

static void sink_destroy(void *self)
{
    (void)self;
}

/* Phases of four seconds: accepts all, fails, fails otherwise, refuses some. */
static void emit_flaky(const weir_batch *batch, weir_outcome *outcome)
{
    long phase = (long)(steady_now_s() / 4) % 4;
    snprintf(outcome->reason, sizeof outcome->reason, "flaky");
    if (phase == 1 || phase == 2)
        outcome->done = 0;
    if (phase == 1)
        outcome->code = WEIR_OUTCOME_RETRY;
    if (phase == 2)
        outcome->code = batch->count % 2 ? WEIR_OUTCOME_REOPEN : WEIR_OUTCOME_DROP;
    if (phase == 3)
        outcome->rejected = outcome->done / 10;
}

static void sink_emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    int number = *(const int *)self;
    outcome->done = batch->count;
    if (number == FIRST_SINK)
        steady_sleep_ms(5);
    else
        emit_flaky(batch, outcome);
    atomic_fetch_add(&taken[number], outcome->done - outcome->rejected);
}

static const weir_handler_type sink_type = {
    .size = sizeof sink_type,
    .abi = WEIR_ABI,
    .name = "sink",
    .summary = "is slow, or fails in phases",
    .create = sink_create,
    .emit = sink_emit,
    .destroy = sink_destroy,
};

/* ---- Adding ---------------------------------------------------------------------------------- */

static uint64_t add_something(weir_stream *stream, uint64_t *state)
{
    static const weir_value event[] = {{"one", 1}, {"two", 2}, {"three", 3}};
    char name[16];
    weir_sample_spec spec = {.size = sizeof spec, .name = "noted", .value = 1, .metadata = "soak"};
    snprintf(name, sizeof name, "n%u", plain_draw(state, 50));
    switch (plain_draw(state, 4)) {
    case 0: return weir_emit(stream, event, 3) == 0 ? 3 : 0;
    case 1: return weir_metric_add(weir_get_metric(stream, "one"), 1) == 0;
    case 2: return weir_add(stream, &spec) == 0;
    default: return weir_add_value(stream, name, 0.5) == 0;
    }
}

static void add_many(uint64_t *state, uint32_t calls, uint64_t *own)
{
    weir_stream *streams[GROUPS];
    for (int i = 0; i < GROUPS; i++)
        streams[i] = weir_get_stream(groups[i]);
    for (uint32_t i = 0; i < calls; i++) {
        uint32_t group = plain_draw(state, GROUPS);
        own[group] += add_something(streams[group], state);
        if (i % PAUSE_EVERY == 0)
            steady_sleep_ms(1);
    }
}

static void *produce(void *argument)
{
    uint64_t own[GROUPS] = {0}, *state = argument;
    add_many(state, plain_draw(state, MAX_CALLS), own);
    for (int i = 0; i < GROUPS; i++)
        atomic_fetch_add(&accepted[i], own[i]);
    return NULL;
}

/* Runs one thread after the other. */
static void *keep_producing(void *argument)
{
    while (!atomic_load(&over)) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, produce, argument) != 0)
            steady_fail("pthread_create: %s", strerror(errno));
        pthread_join(thread, NULL);
        atomic_fetch_add(&threads_started, 1);
    }
    return NULL;
}

/* ---- The ledger ------------------------------------------------------------------------------ */

static void *keep_checking(void *argument)
{
    while (!atomic_load(&over)) {
        steady_check_ledger(handler_names, HANDLERS);
        atomic_fetch_add(&snapshots, 1);
        steady_sleep_ms(20);
    }
    return argument;
}

/* All added values have reached their handlers, and each is delivered, counted as dropped or spooled. */
static void check_end(const uint64_t *added, bool counts_sinks)
{
    uint64_t sum = 0;
    weir_stats process = steady_read_process();
    for (int i = 0; i < GROUPS; i++)
        sum += added[i];
    if (process.added != sum || process.in_rings)
        steady_fail("added %" PRIu64 " of %" PRIu64 " accepted values, %" PRIu64 " in rings", process.added,
                    sum, process.in_rings);
    for (int i = 0; i < HANDLERS; i++) {
        weir_handler_stats stats;
        if (!steady_read_handler(handler_names[i], &stats))
            continue;
        if (stats.queued || (i < FIRST_SINK && stats.offered != added[i]))
            steady_fail("%s: offered %" PRIu64 " of %" PRIu64 ", %" PRIu64 " queued", handler_names[i],
                        stats.offered, i < FIRST_SINK ? added[i] : stats.offered, stats.queued);
        if (counts_sinks && i >= FIRST_SINK && stats.delivered != atomic_load(&taken[i]))
            steady_fail("%s: delivered %" PRIu64 ", but it has %" PRIu64, handler_names[i], stats.delivered,
                        atomic_load(&taken[i]));
    }
}

/* ---- Children -------------------------------------------------------------------------------- */

static _Noreturn void run_child(uint64_t seed)
{
    uint64_t own[GROUPS] = {0}, state = seed;
    plain_hang_no_longer_than(120);
    add_many(&state, CHILD_CALLS, own);
    weir_shutdown(20000);
    check_end(own, false);
    for (int i = 0; i < HANDLERS; i++) {
        weir_handler_stats stats;
        if (steady_read_handler(handler_names[i], &stats))
            atomic_fetch_add(&children->delivered[i], stats.delivered);
    }
    atomic_fetch_add(&children->ended, 1);
    _exit(0);
}

/* A child exits with 0 if its checks have passed. */
static void wait_for_child(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        steady_fail("a child ended with status %x", (unsigned)status);
}

static void *keep_forking(void *argument)
{
    while (!atomic_load(&over)) {
        pid_t child = fork();
        if (child == 0)
            run_child(1 + atomic_load(&children->forked));
        if (child < 0)
            steady_fail("fork: %s", strerror(errno));
        atomic_fetch_add(&children->forked, 1);
        wait_for_child(child);
        steady_sleep_ms(300);
    }
    return argument;
}

/* ---- Configurations -------------------------------------------------------------------------- */

static int read_config(const char *kind, unsigned number)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%u.json", folder, kind, number);
    return weir_configure_file(path);
}

static void *keep_configuring(void *argument)
{
    for (unsigned turn = 0; !atomic_load(&over); turn++) {
        steady_sleep_ms(400);
        if (read_config("valid", turn % VALID) != 0 || weir_reload() != 0)
            steady_fail("configuring: %s", weir_last_error());
        if (read_config("wrong", turn % WRONG) == 0)
            steady_fail("an invalid configuration was accepted");
        atomic_fetch_add(&reloads, 2);
        atomic_fetch_add(&refused_configs, 1);
    }
    return argument;
}

/* ---- The run --------------------------------------------------------------------------------- */

static void print_progress(double now_s)
{
    weir_stats process = steady_read_process();
    printf("%6.0f s: %" PRIu64 " values, %" PRIu64 " threads, %" PRIu64 " children, %" PRIu64
           " reloads, %" PRIu64 " snapshots, resident %ld KiB, %ld descriptors\n",
           now_s, process.added, atomic_load(&threads_started), atomic_load(&children->ended),
           atomic_load(&reloads), atomic_load(&snapshots), steady_resident_kb(), steady_descriptors());
    fflush(stdout);
}

static void watch(double seconds, struct steady *steady)
{
    double start = steady_now_s(), minute = 60;
    for (double now = 0; now < seconds; now = steady_now_s() - start) {
        steady_watch(steady, now / seconds);
        if (now >= minute) {
            print_progress(now);
            minute += 60;
        }
        steady_sleep_ms(200);
    }
    print_progress(steady_now_s() - start);
}

static void print_result(const struct steady *steady)
{
    printf("resident %ld KiB early, %ld KiB late; descriptors %ld early, %ld late; %" PRIu64
           " wrong configurations refused; %" PRIu64 " snapshots of the ledger, each exact\n",
           steady->early_kb, steady->late_kb, steady->early_descriptors, steady->late_descriptors,
           atomic_load(&refused_configs), atomic_load(&snapshots));
    for (int i = 0; i < HANDLERS; i++) {
        weir_handler_stats stats;
        if (steady_read_handler(handler_names[i], &stats))
            printf("result %s offered %" PRIu64 " recovered %" PRIu64 " delivered %" PRIu64 " dropped %" PRIu64
                   " spooled %" PRIu64 " children %" PRIu64 "\n",
                   handler_names[i], stats.offered, stats.recovered, stats.delivered, ledger_dropped(&stats),
                   stats.spooled, atomic_load(&children->delivered[i]));
    }
}

static void start(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
    if (pthread_create(thread, NULL, run, argument) != 0)
        steady_fail("pthread_create");
}

static void run(double seconds)
{
    static uint64_t seeds[PRODUCERS];
    pthread_t producers[PRODUCERS], others[3];
    struct steady steady = {0};
    for (unsigned i = 0; i < PRODUCERS; i++) {
        seeds[i] = i + 1;
        start(&producers[i], keep_producing, &seeds[i]);
    }
    start(&others[0], keep_checking, NULL);
    start(&others[1], keep_forking, NULL);
    start(&others[2], keep_configuring, NULL);
    watch(seconds, &steady);
    atomic_store(&over, true);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(producers[i], NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(others[i], NULL);
    int result = weir_shutdown(60000);
    if (result != 0 && result != WEIR_ERR_DROPPED && result != WEIR_ERR_SPOOLED)
        steady_fail("shutdown: %s", weir_last_error());
    uint64_t added[GROUPS];
    for (int i = 0; i < GROUPS; i++)
        added[i] = atomic_load(&accepted[i]);
    check_end(added, true);
    print_result(&steady);
    steady_check_growth(&steady, seconds);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: soak SECONDS FOLDER\n");
        return 2;
    }
    folder = argv[2];
    /* return large blocks to the system at once, such as a buffer for a spool file: resident memory is then
     * what is in use, not the peak */
    mallopt(M_MMAP_THRESHOLD, 64 * 1024);
    mallopt(M_TRIM_THRESHOLD, 128 * 1024);
    children = mmap(NULL, sizeof *children, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (children == MAP_FAILED || weir_register_handler_type(&sink_type, NULL) != 0 ||
        read_config("valid", 0) != 0)
        steady_fail("cannot start: %s", weir_last_error());
    run(atof(argv[1]));
    return 0;
}
