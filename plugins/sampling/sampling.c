#include "sampling.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../system.h"
#include "text/array.h"

enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000, KEY_ROOM = 160 };

struct sampling_total {
    char key[KEY_ROOM]; /* name and labels */
    double value;
    uint64_t number; /* of the sampling that has read it last */
};

/* ---- Times ----------------------------------------------------------------------------------- */

void sampling_init(struct sampling *sampling, const weir_host *host, int64_t interval_ns)
{
    *sampling = (struct sampling){
        .host = host, .intake = host->service(host, WEIR_SERVICE_INTAKE), .interval_ns = interval_ns};
}

void sampling_fini(struct sampling *sampling)
{
    free(sampling->totals);
    free(sampling->missing);
    *sampling = (struct sampling){0};
}

/* Forgets what this sampling has not found, such as a disk that was removed. */
static void forget_old(struct sampling *sampling)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < sampling->total_count; i++)
        if (sampling->totals[i].number == sampling->number)
            sampling->totals[kept++] = sampling->totals[i];
    sampling->total_count = kept;
}

/* Returns false if a stop is requested. */
static bool sleep_until(struct sampling *sampling, int64_t time_ns)
{
    while (!sampling->is_stopping) {
        int64_t left_ns = time_ns - wr_system_clock_ns(CLOCK_MONOTONIC);
        if (left_ns <= 0)
            return true;
        int64_t left_ms = (left_ns + NS_PER_MS - 1) / NS_PER_MS;
        if (sampling->intake->wait(sampling->host, NULL, 0, left_ms) & WEIR_WAIT_STOP)
            sampling->is_stopping = true;
    }
    return false;
}

static enum sampling_result take(struct sampling *sampling, enum sampling_result (*sample)(void *ctx),
                                 void *ctx)
{
    const struct sampling before = *sampling;
    int64_t now_ns = wr_system_clock_ns(CLOCK_MONOTONIC);
    sampling->elapsed_ns = sampling->number ? now_ns - sampling->begun_ns : 0;
    sampling->begun_ns = now_ns;
    sampling->time_ns = wr_system_clock_ns(CLOCK_REALTIME);
    sampling->number++;
    sampling->cursor = 0;
    enum sampling_result result = sample(ctx);
    if (result == SAMPLING_TAKEN && !sampling->keeps_totals)
        forget_old(sampling);
    if (result == SAMPLING_FAILED) {
        sampling->number = before.number;
        sampling->begun_ns = before.begun_ns;
    }
    return result;
}

static void take_last(struct sampling *sampling, enum sampling_result (*sample)(void *ctx), void *ctx)
{
    int64_t now_ns = wr_system_clock_ns(CLOCK_MONOTONIC);
    sampling->is_short = sampling->number && now_ns - sampling->begun_ns < sampling->interval_ns / 2;
    sampling->give_up_ns = now_ns + NS_PER_S;
    take(sampling, sample, ctx);
}

void sampling_run(struct sampling *sampling, enum sampling_result (*sample)(void *ctx), void *ctx)
{
    int64_t due_ns = wr_system_clock_ns(CLOCK_MONOTONIC);
    while (sleep_until(sampling, due_ns)) {
        if (take(sampling, sample, ctx) == SAMPLING_OVER)
            return;
        int64_t late_ns = wr_system_clock_ns(CLOCK_MONOTONIC) - due_ns;
        due_ns += (late_ns / sampling->interval_ns + 1) * sampling->interval_ns;
    }
    take_last(sampling, sample, ctx);
}

/* ---- Adding ---------------------------------------------------------------------------------- */

/* Returns whether to add the record again. */
static bool wait_for_room(struct sampling *sampling)
{
    if (sampling->intake->wait(sampling->host, NULL, 0, -1) & WEIR_WAIT_STOP)
        sampling->is_stopping = true;
    if (!sampling->is_stopping)
        return true;
    if (!sampling->give_up_ns) /* the stop came during a sampling: what it still adds is the last there is */
        sampling->give_up_ns = wr_system_clock_ns(CLOCK_MONOTONIC) + NS_PER_S;
    poll(NULL, 0, 1); /* from now on the host's wait returns at once */
    return wr_system_clock_ns(CLOCK_MONOTONIC) < sampling->give_up_ns;
}

static void add(struct sampling *sampling, const struct sampling_figure *figure, int instrument, double value,
                const weir_label *labels, size_t label_count)
{
    const weir_typed_value typed = {figure->name, WEIR_DOUBLE(value)};
    const weir_record record = {.size = sizeof record,
                                .labels = labels,
                                .label_count = label_count,
                                .values = &typed,
                                .count = 1,
                                .time_ns = sampling->time_ns,
                                .instrument = instrument,
                                .unit = figure->unit,
                                .help = figure->help};
    while (sampling->intake->add(sampling->host, &record) == WEIR_ADD_FULL)
        if (!wait_for_room(sampling)) {
            sampling->intake->refuse(sampling->host, 1, "",
                                     "the source was stopped, and for a second there was no room for %s",
                                     figure->name);
            return;
        }
}

void sampling_level(struct sampling *sampling, const struct sampling_figure *figure, double value,
                    const weir_label *labels, size_t label_count)
{
    if (sampling->is_short)
        return;
    add(sampling, figure, WEIR_GAUGE, value, labels, label_count);
}

/* Returns NULL if out of memory. */
static struct sampling_total *append(struct sampling *sampling, const char *key)
{
    struct sampling_total *totals =
        wr_array_reserve(sampling->totals, &sampling->total_room, sampling->total_count + 1, sizeof *totals);
    if (!totals)
        return NULL;
    sampling->totals = totals;
    struct sampling_total *total = &totals[sampling->total_count++];
    memset(total, 0, sizeof *total);
    memcpy(total->key, key, sizeof total->key);
    return total;
}

/* Usually the one behind that of the last call. */
static struct sampling_total *find(struct sampling *sampling, const char *key)
{
    for (size_t i = 0; i < sampling->total_count; i++) {
        size_t at = (sampling->cursor + i) % sampling->total_count;
        if (strcmp(sampling->totals[at].key, key) == 0) {
            sampling->cursor = at + 1;
            return &sampling->totals[at];
        }
    }
    return NULL;
}

double sampling_total(struct sampling *sampling, const struct sampling_figure *figure, double total,
                      double unit, const weir_label *labels, size_t label_count)
{
    char key[KEY_ROOM] = "";
    int length = snprintf(key, sizeof key, "%s", figure->name);
    for (size_t i = 0; i < label_count && length < KEY_ROOM; i++)
        length += snprintf(key + length, sizeof key - (size_t)length, "\n%s", labels[i].value);
    struct sampling_total *known = length < KEY_ROOM ? find(sampling, key) : NULL;
    double growth = known && total > known->value ? (total - known->value) / unit : 0;
    if (!known && length < KEY_ROOM) {
        known = append(sampling, key);
        growth = sampling->counts_first ? total / unit : 0;
    }
    if (!known) {
        sampling_miss(sampling, figure->name, length < KEY_ROOM ? ENOMEM : ENAMETOOLONG);
        return 0;
    }
    known->value = total;
    known->number = sampling->number;
    add(sampling, figure, WEIR_COUNTER, growth, labels, label_count);
    return growth;
}

void sampling_miss(struct sampling *sampling, const char *what, int why)
{
    for (size_t i = 0; i < sampling->missing_count; i++)
        if (strcmp(sampling->missing[i], what) == 0)
            return;
    if (!WR_ARRAY_HAS_ROOM(&sampling->missing, &sampling->missing_room, sampling->missing_count + 1))
        return; /* the next time, and not each time */
    sampling->missing[sampling->missing_count++] = what;
    sampling->host->log(sampling->host, WEIR_LOG_INFO, "%s is left out: %s", what,
                        why ? wr_system_strerror(why) : "this machine does not have it");
}
