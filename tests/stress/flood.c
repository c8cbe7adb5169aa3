/* flood: one thread uses far more names than settings.max_series allows, each once. Names beyond the limit
 * share one series, no value is lost, memory does not grow after the limit was reached, and the limit is
 * logged once.
 *
 * WEIR_TEST_NAMES: the number of names; default 300,000. */

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include <weir/handler.h>
#include <weir/weir.h>

#include "../support/plain.h"

enum {
    LIMIT = 100000,        /* the default of settings.max_series */
    GROWTH_KIB = 16 * 1024 /* allowed growth beyond it */
};

/* ---- Handler --------------------------------------------------------------------------------- */

static struct {
    _Atomic uint64_t values, sum, in_overflow;
} received;

static void *create(const weir_host *host, const void *options)
{
    (void)host;
    (void)options;
    return &received;
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    (void)outcome;
    for (uint32_t i = 0; i < batch->count; i++) {
        const weir_series *series = weir_batch_series(batch, &batch->samples[i]);
        received.values++;
        received.sum += (uint64_t)batch->samples[i].value.f64;
        received.in_overflow += strcmp(series->name, "weir_overflow") == 0;
    }
}

static void destroy(void *self)
{
    (void)self;
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "sum",
    .summary = "sums up values, for tests",
    .create = create,
    .emit = emit,
    .destroy = destroy,
};

/* ---- Log ------------------------------------------------------------------------------------- */

static _Atomic unsigned limit_messages;

static void log_message(void *ctx, int level, const char *text)
{
    (void)ctx;
    (void)level;
    limit_messages += strstr(text, "settings.max_series (100000) is reached, first by group \"flood\"") != NULL;
}

/* ---- The flood ------------------------------------------------------------------------------- */

static uint64_t add_from(uint64_t first, uint64_t end)
{
    weir_stream *stream = weir_get_stream("flood");
    char name[32];
    uint64_t sum = 0;
    for (uint64_t i = first; i < end; i++) {
        snprintf(name, sizeof name, "name%" PRIu64, i);
        PLAIN_CHECK(weir_add_value(stream, name, (double)(i % 1000)) == 0, "a value was refused");
        sum += i % 1000;
    }
    PLAIN_CHECK(weir_flush(-1) == 0);
    return sum;
}

/* The resident memory of the process. */
static long read_resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    PLAIN_CHECK(file && fscanf(file, "%*s %ld", &pages) == 1);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void check_ledger(uint64_t names)
{
    weir_stats process;
    weir_handler_stats stats;
    PLAIN_CHECK(weir_get_stats(&process, sizeof process) == 0);
    PLAIN_CHECK(process.added == names && process.added == process.taken + process.in_rings);
    PLAIN_CHECK(weir_get_handler_stats("sum", &stats, sizeof stats) == 0);
    PLAIN_CHECK(stats.offered == names && stats.delivered == names && stats.queued == 0);
}

int main(void)
{
    const char *count = getenv("WEIR_TEST_NAMES");
    const uint64_t names = count ? strtoull(count, NULL, 10) : 300000;
    weir_set_log(log_message, NULL);
    PLAIN_CHECK(weir_register_handler_type(&type, NULL) == 0);
    PLAIN_CHECK(weir_configure("*", "sum", "{\"block_timeout\": \"1h\"}") == 0);
    uint64_t sum = add_from(0, LIMIT + 10000);
    long before_kib = read_resident_kib();
    sum += add_from(LIMIT + 10000, names);
    long grown_kib = read_resident_kib() - before_kib;
    check_ledger(names);
    PLAIN_CHECK(received.values == names && received.sum == sum, "the totals are wrong");
    PLAIN_CHECK(received.in_overflow >= names - LIMIT && received.in_overflow <= names - LIMIT + 10,
                "wrong number of values in the overflow series");
    PLAIN_CHECK(limit_messages == 1, "the limit must be logged once");
    PLAIN_CHECK(grown_kib < GROWTH_KIB, "memory has grown");
    printf("%" PRIu64 " names, %" PRIu64
           " of them in the overflow series; %ld KiB in memory, growth beyond the limit %ld KiB\n",
           names, (uint64_t)received.in_overflow, before_kib + grown_kib, grown_kib);
    return 0;
}
