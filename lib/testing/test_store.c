#include "testing/test_store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A scripted outcome, for the next `times` batches. */
struct step {
    int code;
    uint32_t done, times;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;        /* its clock is the monotonic one */
    weir_testing_sample *samples; /* each owns its metadata and its labels */
    size_t count, room;
    struct step *script;
    size_t script_next, script_count, script_room;
    size_t tries;
    bool block;   /* set by the test: emit waits */
    bool blocked; /* emit is waiting */
} store;

/* ---- The store ------------------------------------------------------------------------------- */

static void make_locks(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&store.change, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&store.lock, NULL);
}

/* The thread that held the lock at the fork does not exist in the child, so the child starts with an empty
 * store and leaks the parent's. */
static void reset_in_child(void)
{
    memset(&store, 0, sizeof store);
    make_locks();
}

static void prepare(void)
{
    make_locks();
    pthread_atfork(NULL, NULL, reset_in_child);
}

static void enter(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    pthread_mutex_lock(&store.lock);
}

static void leave(void)
{
    pthread_mutex_unlock(&store.lock);
}

/* The monotonic time timeout_ms from now. */
static struct timespec find_deadline(int64_t timeout_ms)
{
    static const int64_t never_ms = INT64_C(1000) * 1000 * 1000 * 1000; /* 32 years */
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    if (timeout_ms < 0 || timeout_ms > never_ms)
        timeout_ms = never_ms;
    time.tv_sec += (time_t)(timeout_ms / 1000);
    time.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_sec++;
        time.tv_nsec -= 1000000000;
    }
    return time;
}

/* Waits for a change of the store. Returns false at the deadline. Not a cancellation point: the lock would stay
 * taken. */
static bool wait_for_change(const struct timespec *deadline)
{
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    int error = pthread_cond_timedwait(&store.change, &store.lock, deadline);
    pthread_setcancelstate(cancel, NULL);
    return error == 0;
}

/* Makes room for `count` items. Returns the array, which may have moved, or NULL if out of memory; then nothing
 * has changed. */
static void *reserve(void *items, size_t *room, size_t count, size_t item_size)
{
    enum { LEAST = 16 };
    if (items && count <= *room)
        return items;
    size_t more = count < LEAST ? LEAST : count * 2;
    void *moved = reallocarray(items, more, item_size);
    if (moved)
        *room = more;
    return moved;
}

static void free_samples(void)
{
    for (size_t i = 0; i < store.count; i++) {
        free((char *)store.samples[i].metadata);
        free((weir_label *)store.samples[i].labels);
    }
    free(store.samples);
    store.samples = NULL;
    store.count = store.room = 0;
}

void wr_test_store_reset(bool all)
{
    enter();
    free_samples();
    if (all) {
        free(store.script);
        store.script = NULL;
        store.script_next = store.script_count = store.script_room = 0;
        store.tries = 0;
        store.block = false;
    }
    pthread_cond_broadcast(&store.change);
    leave();
}

/* ---- Storing --------------------------------------------------------------------------------- */

static bool reserve_samples(size_t more)
{
    weir_testing_sample *samples = reserve(store.samples, &store.room, store.count + more, sizeof *samples);
    if (samples)
        store.samples = samples;
    return samples;
}

/* The memory of a label set that has ended is given to another one, while its samples are still here. Returns
 * NULL without labels, or if out of memory. */
static weir_label *copy_labels(const weir_series *series)
{
    size_t count = series->label_count, bytes = count * sizeof(weir_label);
    for (size_t i = 0; i < count; i++)
        bytes += strlen(series->labels[i].key) + strlen(series->labels[i].value) + 2;
    weir_label *labels = count ? malloc(bytes) : NULL;
    if (!labels)
        return NULL;
    char *text = (char *)(labels + count);
    for (size_t i = 0; i < count; i++) {
        labels[i].key = text;
        text = stpcpy(text, series->labels[i].key) + 1;
        labels[i].value = text;
        text = stpcpy(text, series->labels[i].value) + 1;
    }
    return labels;
}

static void append(const weir_batch *batch, const weir_sample *sample)
{
    const weir_series *series = weir_batch_series(batch, sample);
    const weir_label *labels = copy_labels(series);
    bool is_integer = sample->kind == WEIR_KIND_INT;
    store.samples[store.count++] = (weir_testing_sample){
        .size = sizeof(weir_testing_sample),
        .group = series->group,
        .name = series->name,
        .value = is_integer ? (double)sample->value.i64 : sample->value.f64,
        .integer = is_integer ? sample->value.i64 : 0,
        .is_integer = is_integer,
        .cumulative = series->cumulative,
        .more = sample->flags & WEIR_SAMPLE_MORE,
        .time_ns = sample->time_ns,
        .labels = labels,
        .label_count = labels ? series->label_count : 0,
        .metadata = sample->note ? strdup(batch->notes[sample->note]) : NULL,
        .unit = series->unit,
        .help = series->help,
    };
}

/* Rounds `done` down to whole events: an event is settled as a whole. */
static uint32_t round_to_events(const weir_batch *batch, uint32_t done)
{
    if (done >= batch->count)
        return batch->count;
    while (done && batch->samples[done - 1].flags & WEIR_SAMPLE_MORE)
        done--;
    return done;
}

static struct step next_step(void)
{
    if (store.script_next == store.script_count)
        return (struct step){WEIR_OUTCOME_OK, 0, 0};
    struct step *step = &store.script[store.script_next];
    if (--step->times == 0)
        store.script_next++;
    return *step;
}

static void wait_while_blocked(void)
{
    while (store.block) {
        store.blocked = true;
        pthread_cond_broadcast(&store.change);
        pthread_cond_wait(&store.change, &store.lock);
    }
    store.blocked = false;
}

static void take(const weir_batch *batch, weir_outcome *outcome)
{
    struct step step = next_step();
    outcome->done = step.code == WEIR_OUTCOME_OK ? batch->count : round_to_events(batch, step.done);
    outcome->code = step.code;
    if (step.code != WEIR_OUTCOME_OK)
        snprintf(outcome->reason, sizeof outcome->reason, "as scripted by the test");
    if (!reserve_samples(outcome->done)) {
        outcome->code = WEIR_OUTCOME_RETRY;
        outcome->done = 0;
    }
    for (uint32_t i = 0; i < outcome->done; i++)
        append(batch, &batch->samples[i]);
}

/* ---- The handler type ------------------------------------------------------------------------ */

struct test_options {
    int64_t run;
};

/* A handler with other options is a new one: with another number each test starts with a handler that has not
 * failed yet. */
static const weir_option rows[] = {
    WEIR_OPTION_ROW("run", INT, 0, "0", "0..", "the number of the test", struct test_options, run),
    {0},
};

static void *create(const weir_host *host, const void *options)
{
    (void)options;
    return (void *)host;
}

static void emit(void *self, const weir_batch *batch, weir_outcome *outcome)
{
    (void)self;
    enter();
    store.tries++;
    wait_while_blocked();
    take(batch, outcome);
    pthread_cond_broadcast(&store.change);
    leave();
}

static void destroy(void *self)
{
    (void)self;
}

const weir_handler_type wr_test_store_type = {
    .size = sizeof(weir_handler_type),
    .abi = WEIR_ABI,
    .name = "testing",
    .summary = "stores values in memory, for tests",
    .options = rows,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct test_options),
    .create = create,
    .emit = emit,
    .destroy = destroy,
};

/* ---- Reading --------------------------------------------------------------------------------- */

static bool matches(const weir_testing_sample *sample, const char *group, const char *name)
{
    return (!group || strcmp(group, sample->group) == 0) && (!name || strcmp(name, sample->name) == 0);
}

static size_t count_locked(const char *group, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < store.count; i++)
        count += matches(&store.samples[i], group, name);
    return count;
}

size_t wr_test_store_count(const char *group, const char *name)
{
    enter();
    size_t count = count_locked(group, name);
    leave();
    return count;
}

bool wr_test_store_get(const char *group, const char *name, size_t number, weir_testing_sample *sample)
{
    bool found = false;
    enter();
    for (size_t i = 0; i < store.count && !found; i++)
        if (matches(&store.samples[i], group, name) && number-- == 0) {
            *sample = store.samples[i];
            found = true;
        }
    leave();
    return found;
}

bool weir_testing_wait(const char *group, const char *name, size_t count, int64_t timeout_ms)
{
    struct timespec deadline = find_deadline(timeout_ms);
    enter();
    while (count_locked(group, name) < count && wait_for_change(&deadline))
        ;
    bool reached = count_locked(group, name) >= count;
    leave();
    return reached;
}

/* ---- The script ------------------------------------------------------------------------------ */

bool wr_test_store_add_step(int code, uint32_t done, uint32_t times)
{
    if (!times)
        return true;
    enter();
    struct step *script = reserve(store.script, &store.script_room, store.script_count + 1, sizeof *script);
    if (script) {
        store.script = script;
        script[store.script_count++] = (struct step){code, done, times};
    }
    leave();
    return script;
}

static void set_block(bool block)
{
    enter();
    store.block = block;
    pthread_cond_broadcast(&store.change);
    leave();
}

void weir_testing_block(void)
{
    set_block(true);
}

void weir_testing_release(void)
{
    set_block(false);
}

bool wr_test_store_is_blocking(void)
{
    enter();
    bool block = store.block;
    leave();
    return block;
}

bool weir_testing_wait_blocked(int64_t timeout_ms)
{
    struct timespec deadline = find_deadline(timeout_ms);
    enter();
    while (!store.blocked && wait_for_change(&deadline))
        ;
    bool blocked = store.blocked;
    leave();
    return blocked;
}

size_t weir_testing_tries(void)
{
    enter();
    size_t tries = store.tries;
    leave();
    return tries;
}
