#include "tally.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#include "registry/labels_walk.h"
#include "text/array.h"

/* One for the process: the handler may be made anew, and the command reads it after it was destroyed. */
static struct {
    pthread_mutex_t lock;
    struct tally tally;
    uint32_t room;
    struct known *known; /* by the series' id */
    uint32_t known_room;
    const weir_host *host;
    const weir_series_keeper *keeper;
    const char *name;
    int64_t start_ns, begun_ns;
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What is known of the series that has an id. */
struct known {
    uint64_t serial;             /* of the series; 0: nothing is known */
    struct tally_series *series; /* NULL: it is measured */
    uint8_t kind;                /* enum kind */
};

enum kind {
    KIND_JOB,
    KIND_IGNORED, /* measured, and not part of the table */
    KIND_CPU,
    KIND_MEMORY,
    KIND_READ,
    KIND_WRITTEN,
    KIND_RECEIVED,
    KIND_SENT,
    KIND_LOOP,
};

/* ---- Series ---------------------------------------------------------------------------------- */

static const char *label_of(const weir_series *series, const char *key)
{
    const char *value = wr_labels_find(series->labels, series->label_count, key);
    return value ? value : "";
}

static enum kind find_direction(const weir_series *series, const char *in, enum kind incoming,
                                enum kind outgoing)
{
    return strcmp(label_of(series, "direction"), in) == 0 ? incoming : outgoing;
}

static enum kind find_kind(const weir_series *series)
{
    bool is_process = strcmp(series->group, "process") == 0, is_machine = strcmp(series->group, "system") == 0;
    if ((!is_process && !is_machine) || strcmp(label_of(series, TALLY_LABEL), own.name) != 0)
        return KIND_JOB;
    if (is_process && strcmp(series->name, "cpu.time") == 0)
        return KIND_CPU;
    if (is_process && strcmp(series->name, "memory.usage") == 0)
        return KIND_MEMORY;
    if (is_process && strcmp(series->name, "disk.io") == 0)
        return find_direction(series, "read", KIND_READ, KIND_WRITTEN);
    if (is_machine && strcmp(series->name, "network.io") == 0)
        return strcmp(label_of(series, "device"), "lo") == 0
                   ? find_direction(series, "receive", KIND_LOOP, KIND_IGNORED)
                   : find_direction(series, "receive", KIND_RECEIVED, KIND_SENT);
    return KIND_IGNORED;
}

static struct tally_series *add_series(const weir_series *series)
{
    if (!WR_ARRAY_HAS_ROOM(&own.tally.series, &own.room, (uint32_t)own.tally.count + 1))
        return NULL;
    struct tally_series *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    own.keeper->keep(own.host, series);
    made->series = series;
    own.tally.series[own.tally.count++] = made;
    return made;
}

/* Returns NULL if out of memory. */
static const struct known *learn(const weir_series *series)
{
    if (!WR_ARRAY_HAS_ROOM(&own.known, &own.known_room, series->id + 1))
        return NULL;
    struct known *known = &own.known[series->id];
    if (known->serial == series->serial)
        return known;
    enum kind kind = find_kind(series);
    struct tally_series *row = kind == KIND_JOB ? add_series(series) : NULL;
    if (kind == KIND_JOB && !row)
        return NULL;
    *known = (struct known){series->serial, row, (uint8_t)kind};
    return known;
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* Returns false if out of memory; then nothing was added. */
static bool put_value(struct tally_series *series, const weir_sample *sample, double value)
{
    enum wr_sketch_result result = wr_sketch_add(&series->sketch, value);
    if (result == WR_SKETCH_NO_MEMORY)
        return false;
    own.tally.values++;
    if (result == WR_SKETCH_NOT_FINITE)
        series->others++;
    else
        /* it may be from before the run or from the future */
        bins_put(&series->bins, sample->time_ns > own.start_ns ? sample->time_ns - own.start_ns : 0, value);
    return true;
}

static void put_memory(const weir_sample *sample, double value)
{
    struct tally_measured *measured = &own.tally.measured;
    if (sample->time_ns < own.begun_ns || value <= 0) /* it has none any more once it has ended */
        return;
    measured->memory_now = value;
    measured->memory_most = value > measured->memory_most ? value : measured->memory_most;
    measured->memory_sum += value;
    measured->memory_count++;
}

static void put_measured(enum kind kind, const weir_sample *sample, double value)
{
    struct tally_measured *measured = &own.tally.measured;
    measured->has_disk |= kind == KIND_READ || kind == KIND_WRITTEN;
    measured->has_network |= kind == KIND_RECEIVED || kind == KIND_SENT || kind == KIND_LOOP;
    switch (kind) {
    case KIND_CPU: measured->cpu_s += value; break;
    case KIND_MEMORY: put_memory(sample, value); break;
    case KIND_READ: measured->read_bytes += value; break;
    case KIND_WRITTEN: measured->written_bytes += value; break;
    case KIND_RECEIVED: measured->received_bytes += value; break;
    case KIND_SENT: measured->sent_bytes += value; break;
    case KIND_LOOP: measured->loop_bytes += value; break;
    default: break;
    }
}

static bool put(const weir_batch *batch, const weir_sample *sample)
{
    const weir_series *series = weir_batch_series(batch, sample);
    double value = sample->kind == WEIR_KIND_INT ? (double)sample->value.i64 : sample->value.f64;
    const struct known *known = learn(series);
    if (!known)
        return false;
    if (known->kind == KIND_JOB)
        return put_value(known->series, sample, value);
    put_measured(known->kind, sample, value);
    return true;
}

/* ---- The type -------------------------------------------------------------------------------- */

static void *create(const weir_host *host, const void *options)
{
    (void)options;
    own.host = host;
    own.keeper = host->service(host, WEIR_SERVICE_SERIES);
    return &own;
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    pthread_mutex_lock(&own.lock);
    outcome->done = 0;
    while (outcome->done < batch->count && put(batch, &batch->samples[outcome->done]))
        outcome->done++;
    pthread_mutex_unlock(&own.lock);
    if (outcome->done == batch->count)
        return;
    outcome->code = WEIR_OUTCOME_RETRY;
    strcpy(outcome->reason, "out of memory");
}

static void destroy(void *self)
{
    (void)self;
}

static const weir_handler_type type = {
    .size = sizeof(weir_handler_type),
    .abi = WEIR_ABI,
    .name = TALLY_TYPE,
    .summary = "keeps what the table at the end of weir run shows",
    .create = create,
    .emit = emit,
    .destroy = destroy,
    .flags = WEIR_TYPE_SHARES_NOTHING,
};

int tally_register(const char *name, int64_t start_ns)
{
    own.name = name;
    own.start_ns = start_ns;
    own.begun_ns = INT64_MAX;
    return weir_register_handler_type(&type, NULL);
}

void tally_set_begun(int64_t time_ns)
{
    pthread_mutex_lock(&own.lock);
    own.begun_ns = time_ns;
    pthread_mutex_unlock(&own.lock);
}

void tally_read(void (*read)(void *ctx, const struct tally *tally), void *ctx)
{
    pthread_mutex_lock(&own.lock);
    read(ctx, &own.tally);
    pthread_mutex_unlock(&own.lock);
}
