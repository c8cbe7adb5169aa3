/* summed: threads add to counters, gauges and histograms, summed by themselves or not, while the configuration
 * changes between handlers that sum, that take single values, and both, while children are forked, and until a
 * shutdown refuses them, without a journal and with one: each increment that was taken arrives once. A group of
 * its own is always summed by one handler, in each configuration with another interval, and in some beside
 * single values: there each bucket is exact, and no total ever falls. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../support/ledger.h"
#include "../support/plain.h"

enum { THREADS = 4, TURNS = 60, SERIES = 20, FORK_EACH = 6, CHILD_VALUES = 100 };
enum { MOST = 99 }; /* the largest measure */
enum { KEPT = 3 };  /* buckets of what is always summed */

static _Atomic uint64_t added, gauged, measured;
static _Atomic uint64_t quarters; /* what was added to counters */

/* by instances of one type, which may run at the same time */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t arrived, gauges_arrived, measures_arrived;
static double sum; /* of counters */

static const double kept_bounds[KEPT - 1] = {5, 15};
static _Atomic uint64_t kept[KEPT];
static uint64_t kept_totals[KEPT];

/* ---- The destination ------------------------------------------------------------------------- */

static void count(const weir_series *series, uint64_t values, double all)
{
    if (series->name[0] == 'g') {
        gauges_arrived += values;
        return;
    }
    if (series->name[0] == 'h') {
        measures_arrived += values;
        return;
    }
    arrived += values;
    sum += all;
}

static void check_kept(const weir_summary *summary)
{
    for (size_t i = 0; i < summary->bucket_count; i++) {
        PLAIN_CHECK(summary->total_buckets[i] >= kept_totals[i], "no total falls");
        kept_totals[i] = summary->total_buckets[i];
    }
}

static void check_buckets(const weir_summary *summary)
{
    uint64_t values = 0;
    for (size_t i = 0; i < summary->bucket_count; i++)
        values += summary->buckets[i];
    PLAIN_CHECK(!summary->bucket_count || values == summary->count, "the buckets have all values");
    PLAIN_CHECK(!summary->bucket_count || !values || (summary->min >= 0 && summary->max <= MOST));
}

static void *create(const weir_host *host, const void *options)
{
    (void)options;
    return (void *)(uintptr_t)host;
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    const weir_host *host = self;
    const weir_summaries *summaries = host->service(host, WEIR_SERVICE_SUMMARIES);
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < batch->count; i++) {
        const weir_sample *sample = &batch->samples[i];
        const weir_series *series = weir_batch_series(batch, sample);
        weir_summary summary = {.size = sizeof summary};
        if (sample->kind == WEIR_KIND_SUMMARY) {
            PLAIN_CHECK(summaries->read(host, batch, sample, &summary));
            check_buckets(&summary);
        }
        if (series->name[0] == 'k') {
            PLAIN_CHECK(sample->kind == WEIR_KIND_SUMMARY);
            check_kept(&summary);
        } else if (sample->kind == WEIR_KIND_SUMMARY) {
            count(series, summary.count, summary.sum);
        } else {
            count(series, 1, sample->value.f64);
        }
    }
    pthread_mutex_unlock(&lock);
    outcome->done = batch->count;
}

static void open_handler(void *self, weir_outcome *outcome)
{
    (void)self, (void)outcome;
}

static void close_handler(void *self)
{
    (void)self;
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .flags = WEIR_TYPE_SHARES_NOTHING, /* a child may be forked while it is in use */
    .name = "counting",
    .summary = "counts what arrives",
    .kinds = WEIR_KINDS_DOUBLE | WEIR_KINDS_INT | WEIR_KINDS_SUMMARY,
    .create = create,
    .open = open_handler,
    .emit = emit,
    .close = close_handler,
    .destroy = close_handler,
};

/* ---- The program ----------------------------------------------------------------------------- */

static void *add(void *number)
{
    uint64_t state = (uint64_t)(uintptr_t)number + 1;
    weir_metric *counters[SERIES];
    weir_stream *stream = weir_get_stream("summed");
    weir_metric *gauge = weir_get_gauge(stream, "gauge");
    weir_metric *histogram = weir_get_histogram(stream, "histogram", NULL, 0);
    weir_metric *always = weir_get_histogram(weir_get_stream("kept"), "kept", kept_bounds, KEPT - 1);
    for (int i = 0; i < SERIES; i++) {
        char name[32];
        snprintf(name, sizeof name, "counter%d", i);
        counters[i] = weir_get_counter(stream, name);
    }
    for (bool is_open = true; is_open;) {
        uint64_t steps = 0, increments = 0, levels = 0, measures = 0;
        for (int i = 0; is_open && i < 100; i++) {
            uint32_t step = plain_draw(&state, 8);
            is_open = weir_metric_add(counters[plain_draw(&state, SERIES)], step / 4.0) == 0;
            steps += is_open ? step : 0;
            increments += is_open;
        }
        levels += weir_metric_add(gauge, (double)steps) == 0;
        levels += weir_metric_change(gauge, -1) == 0;
        for (int i = 0; i < 100; i++)
            measures += weir_metric_add(histogram, plain_draw(&state, MOST + 1)) == 0;
        for (int i = 0; i < 100; i++) {
            uint32_t bucket = plain_draw(&state, KEPT);
            if (weir_metric_add(always, 10 * bucket) == 0)
                atomic_fetch_add(&kept[bucket], 1);
        }
        atomic_fetch_add(&measured, measures);
        atomic_fetch_add(&added, increments);
        atomic_fetch_add(&gauged, levels);
        atomic_fetch_add(&quarters, steps);
    }
    return NULL;
}

/* The setting, or "". */
static char journal[100];

static void configure(int turn)
{
    static const char *const handlers[] = {
        "\"a\":{\"type\":\"counting\",\"aggregate\":\"10ms\",\"percentiles\":[]}",
        "\"a\":{\"type\":\"counting\",\"block_timeout\":\"1h\"}",
        "\"a\":{\"type\":\"counting\",\"aggregate\":\"1h\",\"percentiles\":[]},"
        "\"b\":{\"type\":\"null\",\"aggregate\":\"11ms\",\"percentiles\":[]}",
        "\"a\":{\"type\":\"counting\",\"aggregate\":\"10ms\"},\"b\":{\"type\":\"null\",\"block_timeout\":"
        "\"1h\"}",
        "\"c\":{\"type\":\"counting\",\"aggregate\":\"1h\"}",
    };
    static const char *const routes[] = {"\"a\"", "\"a\"", "[\"a\",\"b\"]", "[\"a\",\"b\"]", "\"c\""};
    enum { KINDS = sizeof routes / sizeof *routes };
    static const char *const beside[] = {"", ",\"n\""};
    char text[700];
    int length =
        snprintf(text, sizeof text,
                 "{\"settings\":{%s\"shutdown_timeout\":\"1h\"},\"handlers\":{%s,\"n\":{\"type\":"
                 "\"null\",\"block_timeout\":"
                 "\"1h\"},\"k\":{\"type\":\"counting\",\"aggregate\":\"%dms\",\"percentiles\":[]}},"
                 "\"groups\":{\"*\":%s,\"kept\":[\"k\"%s]}}",
                 journal, handlers[turn % KINDS], 10 + turn % 7, routes[turn % KINDS], beside[turn % 2]);
    int refused = weir_configure_text(text, (size_t)length);
    if (refused)
        fprintf(stderr, "%s\n", weir_last_error());
    PLAIN_CHECK(!refused);
}

/* The child has none of its parent's sums. */
static void fork_child(void)
{
    weir_stats process;
    pid_t child = fork();
    if (child == 0) {
        pthread_mutex_init(&lock, NULL);
        arrived = measures_arrived = 0;
        memset(kept_totals, 0, sizeof kept_totals);
        weir_metric *counter = weir_get_counter(weir_get_stream("summed"), "counter0");
        weir_metric *histogram = weir_get_histogram(weir_get_stream("summed"), "histogram", NULL, 0);
        for (int i = 0; i < CHILD_VALUES; i++) {
            PLAIN_CHECK(weir_metric_add(counter, 1) == 0);
            PLAIN_CHECK(weir_metric_add(histogram, 1) == 0);
        }
        PLAIN_CHECK(weir_flush(-1) == 0);
        PLAIN_CHECK(weir_get_stats(&process, sizeof process) == 0);
        PLAIN_CHECK(process.added == 2 * CHILD_VALUES && ledger_is_taken(&process), "the child's ledger");
        PLAIN_CHECK(arrived == CHILD_VALUES && measures_arrived == CHILD_VALUES, "what arrived in the child");
        _exit(0);
    }
    int status = 0;
    PLAIN_CHECK(child > 0 && waitpid(child, &status, 0) == child);
    PLAIN_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int run(void)
{
    pthread_t threads[THREADS];
    weir_stats process;
    PLAIN_CHECK(weir_register_handler_type(&type, NULL) == 0);
    configure(0);
    PLAIN_CHECK(weir_start() == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        PLAIN_CHECK(pthread_create(&threads[i], NULL, add, (void *)i) == 0);
    for (int turn = 1; turn <= plain_rounds(TURNS); turn++) {
        usleep(3000);
        configure(turn);
        PLAIN_CHECK(ledger_all_are_balanced());
        if (turn % FORK_EACH == 0 && !plain_is_sanitized(""))
            fork_child();
    }
    PLAIN_CHECK(weir_shutdown(-1) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    PLAIN_CHECK(weir_get_stats(&process, sizeof process) == 0);
    PLAIN_CHECK(ledger_is_taken(&process) && ledger_all_are_balanced());
    fprintf(stderr,
            "%" PRIu64 " increments, %" PRIu64 " arrived: %g, %.3f; %" PRIu64 " and %" PRIu64 " of gauges\n",
            added, arrived, (double)quarters / 4, sum, gauged, gauges_arrived);
    fprintf(stderr, "%" PRIu64 " measures, %" PRIu64 " arrived\n", measured, measures_arrived);
    for (int i = 0; i < KEPT; i++)
        fprintf(stderr, "bucket %d: %" PRIu64 " added, %" PRIu64 " arrived\n", i, kept[i], kept_totals[i]);
    for (int i = 0; i < KEPT; i++)
        PLAIN_CHECK(kept_totals[i] == kept[i] && kept[i] > 0, "each bucket");
    PLAIN_CHECK(process.added == added + gauged + measured + kept[0] + kept[1] + kept[2] &&
                process.unrouted == 0);
    PLAIN_CHECK(added > 0 && arrived == added && gauges_arrived == gauged && measures_arrived == measured);
    /* what was added while a route changed arrives as values of equal size, whose sum is rounded */
    PLAIN_CHECK(fabs(sum - (double)quarters / 4) < 0.125);
    return 0;
}

/* In a process of its own: a journal cannot be left again. */
static void run_with_journal(void)
{
    char folder[] = "/tmp/weir-summed-XXXXXX", command[60];
    int status = 0;
    PLAIN_CHECK(mkdtemp(folder));
    pid_t child = fork();
    if (child == 0) {
        plain_hang_no_longer_than(plain_limit(60));
        snprintf(journal, sizeof journal, "\"journal\":\"%s\",", folder);
        exit(run());
    }
    PLAIN_CHECK(child > 0 && waitpid(child, &status, 0) == child);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    PLAIN_CHECK(system(command) == 0);
    PLAIN_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "with a journal");
}

int main(void)
{
    plain_hang_no_longer_than(plain_limit(120));
    run_with_journal();
    return run();
}
