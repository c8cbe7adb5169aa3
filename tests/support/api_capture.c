#include "api_capture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/handler.h>
#include <weir/weir.h>

enum { ROOM = 100000 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct captured *all;
    size_t count, batches;
    int code, error;
    char reason[200];
    bool hold, is_held;
} capture = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

static void copy(char *to, size_t room, const char *from)
{
    snprintf(to, room, "%s", from ? from : "");
}

static void keep(const char *handler, const weir_batch *batch, const weir_sample *sample)
{
    const weir_series *series = weir_batch_series(batch, sample);
    struct captured *captured = &capture.all[capture.count++ % ROOM];
    copy(captured->group, sizeof captured->group, series->group);
    copy(captured->name, sizeof captured->name, series->name);
    copy(captured->unit, sizeof captured->unit, series->unit);
    copy(captured->help, sizeof captured->help, series->help);
    copy(captured->note, sizeof captured->note, sample->note ? batch->notes[sample->note] : "");
    captured->labels[0] = '\0';
    for (size_t i = 0; i < series->label_count; i++) {
        size_t length = strlen(captured->labels);
        snprintf(captured->labels + length, sizeof captured->labels - length, "%s%s=%s", i ? "," : "",
                 series->labels[i].key, series->labels[i].value);
    }
    captured->kind = sample->kind;
    captured->instrument = series->instrument;
    captured->integer = sample->value.i64;
    captured->value = sample->kind == WEIR_KIND_INT ? (double)sample->value.i64 : sample->value.f64;
    captured->time_ns = sample->time_ns;
    captured->cumulative = series->cumulative;
    captured->total = sample->flags & WEIR_SAMPLE_CUMULATIVE;
    captured->more = sample->flags & WEIR_SAMPLE_MORE;
    captured->ended = sample->flags & WEIR_SAMPLE_ENDED;
    copy(captured->handler, sizeof captured->handler, handler);
}

static void *create(const weir_host *host, const void *options)
{
    (void)options;
    return (void *)host;
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    const weir_host *host = self;
    pthread_mutex_lock(&capture.lock);
    capture.batches++;
    while (capture.hold) {
        capture.is_held = true;
        pthread_cond_broadcast(&capture.change);
        pthread_cond_wait(&capture.change, &capture.lock);
    }
    capture.is_held = false;
    outcome->code = capture.code;
    if (capture.code == WEIR_OUTCOME_OK) {
        for (uint32_t i = 0; i < batch->count; i++)
            keep(host->name, batch, &batch->samples[i]);
    } else {
        copy(outcome->reason, sizeof outcome->reason, capture.reason);
        outcome->error = capture.error;
    }
    pthread_mutex_unlock(&capture.lock);
}

static void destroy(void *self)
{
    (void)self;
}

static const weir_handler_type type = {
    .size = sizeof type,
    .abi = WEIR_ABI,
    .name = "capture",
    .summary = "keeps the samples it receives, for tests",
    .create = create,
    .emit = emit,
    .destroy = destroy,
};

void capture_register(void)
{
    capture.all = calloc(ROOM, sizeof *capture.all);
    if (!capture.all || weir_register_handler_type(&type, NULL))
        abort();
}

size_t capture_count(void)
{
    pthread_mutex_lock(&capture.lock);
    size_t count = capture.count;
    pthread_mutex_unlock(&capture.lock);
    return count;
}

const struct captured *capture_at(size_t i)
{
    return &capture.all[i % ROOM];
}

size_t capture_batches(void)
{
    pthread_mutex_lock(&capture.lock);
    size_t batches = capture.batches;
    pthread_mutex_unlock(&capture.lock);
    return batches;
}

void capture_fail(int code, const char *reason)
{
    capture_fail_with(code, 0, reason);
}

void capture_fail_with(int code, int error, const char *reason)
{
    pthread_mutex_lock(&capture.lock);
    capture.code = code;
    capture.error = error;
    copy(capture.reason, sizeof capture.reason, reason);
    pthread_mutex_unlock(&capture.lock);
}

void capture_hold(void)
{
    pthread_mutex_lock(&capture.lock);
    capture.hold = true;
    pthread_mutex_unlock(&capture.lock);
}

void capture_release(void)
{
    pthread_mutex_lock(&capture.lock);
    capture.hold = false;
    pthread_cond_broadcast(&capture.change);
    pthread_mutex_unlock(&capture.lock);
}

void capture_wait_held(void)
{
    pthread_mutex_lock(&capture.lock);
    while (!capture.is_held)
        pthread_cond_wait(&capture.change, &capture.lock);
    pthread_mutex_unlock(&capture.lock);
}
