#include "api/capture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "text/common.h"
#include "os/lock.h"

struct answer {
    int code;
    uint32_t done, times;
};

static struct {
    struct wr_lock lock;
    struct wr_condition change;
    weir_testing_sample *kept; /* metadata is theirs to free */
    size_t count, room;
    struct answer *script;
    size_t script_at, script_end, script_room;
    size_t tries;
    bool block, blocked;
} store;

/* ---- The store ------------------------------------------------------------------------------- */

/* Whoever had the lock at the fork is not in the child, which begins anew; the memory is the parent's. */
static void begin_in_child(void)
{
    memset(&store, 0, sizeof store);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, begin_in_child);
}

static void enter(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    wr_lock_enter(&store.lock);
}

static void leave(void)
{
    wr_lock_leave(&store.lock);
}

static void forget_samples(void)
{
    for (size_t i = 0; i < store.count; i++)
        free((char *)store.kept[i].metadata);
    free(store.kept);
    store.kept = NULL;
    store.count = store.room = 0;
}

void wr_capture_reset(bool all)
{
    enter();
    forget_samples();
    if (all) {
        free(store.script);
        store.script = NULL;
        store.script_at = store.script_end = store.script_room = 0;
        store.tries = 0;
        store.block = false;
    }
    wr_condition_wake(&store.change);
    leave();
}

/* ---- Keeping --------------------------------------------------------------------------------- */

static bool make_room(size_t more)
{
    if (store.room - store.count >= more)
        return true;
    size_t room = (store.count + more) * 2;
    weir_testing_sample *kept = realloc(store.kept, room * sizeof *kept);
    if (!kept)
        return false;
    store.kept = kept;
    store.room = room;
    return true;
}

static void keep(const weir_batch *batch, const weir_sample *sample)
{
    const weir_series *series = weir_batch_series(batch, sample);
    bool is_integer = sample->kind == WEIR_KIND_INT;
    store.kept[store.count++] = (weir_testing_sample){
        .size = sizeof(weir_testing_sample),
        .group = series->group,
        .name = series->name,
        .value = is_integer ? (double)sample->value.i64 : sample->value.f64,
        .integer = is_integer ? sample->value.i64 : 0,
        .is_integer = is_integer,
        .cumulative = series->cumulative,
        .more = sample->flags & WEIR_SAMPLE_MORE,
        .time_ns = sample->time_ns,
        .labels = series->labels,
        .label_count = series->label_count,
        .metadata = sample->note ? strdup(batch->notes[sample->note]) : NULL,
        .unit = series->unit,
        .help = series->help,
    };
}

/* An event is settled as a whole, or not at all. */
static uint32_t whole_events(const weir_batch *batch, uint32_t done)
{
    if (done >= batch->count)
        return batch->count;
    while (done && batch->samples[done - 1].flags & WEIR_SAMPLE_MORE)
        done--;
    return done;
}

static struct answer next_answer(void)
{
    if (store.script_at == store.script_end)
        return (struct answer){WEIR_OUTCOME_OK, 0, 0};
    struct answer *answer = &store.script[store.script_at];
    if (--answer->times == 0)
        store.script_at++;
    return *answer;
}

static void hang(void)
{
    while (store.block) {
        store.blocked = true;
        wr_condition_wake(&store.change);
        wr_condition_wait(&store.change, &store.lock, WR_NEVER);
    }
    store.blocked = false;
}

static void take(const weir_batch *batch, weir_outcome *outcome)
{
    struct answer answer = next_answer();
    outcome->done = answer.code == WEIR_OUTCOME_OK ? batch->count : whole_events(batch, answer.done);
    outcome->code = answer.code;
    if (answer.code != WEIR_OUTCOME_OK)
        snprintf(outcome->reason, sizeof outcome->reason, "as the test's script says");
    if (!make_room(outcome->done)) {
        outcome->code = WEIR_OUTCOME_RETRY;
        outcome->done = 0;
    }
    for (uint32_t i = 0; i < outcome->done; i++)
        keep(batch, &batch->samples[i]);
}

/* ---- The handler type ------------------------------------------------------------------------ */

struct capture_options {
    int64_t run;
};

/* A handler whose options differ is another one: weir_testing_start gets one that has not failed yet. */
static const weir_option rows[] = {
    {"run", WEIR_OPTION_INT, 0, "0", "0..", "the number of the test", offsetof(struct capture_options, run)},
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
    hang();
    take(batch, outcome);
    wr_condition_wake(&store.change);
    leave();
}

static void destroy(void *self)
{
    (void)self;
}

const weir_handler_type wr_capture_type = {
    .size = sizeof(weir_handler_type),
    .abi = WEIR_ABI,
    .name = "testing",
    .summary = "keeps what it is given, for tests",
    .options = rows,
    .option_row_size = sizeof(weir_option),
    .options_size = sizeof(struct capture_options),
    .create = create,
    .emit = emit,
    .destroy = destroy,
};

/* ---- Asking ---------------------------------------------------------------------------------- */

static bool is_meant(const weir_testing_sample *sample, const char *group, const char *name)
{
    return (!group || strcmp(group, sample->group) == 0) && (!name || strcmp(name, sample->name) == 0);
}

static size_t count_locked(const char *group, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < store.count; i++)
        count += is_meant(&store.kept[i], group, name);
    return count;
}

size_t wr_capture_count(const char *group, const char *name)
{
    enter();
    size_t count = count_locked(group, name);
    leave();
    return count;
}

bool wr_capture_get(const char *group, const char *name, size_t number, weir_testing_sample *sample)
{
    bool found = false;
    enter();
    for (size_t i = 0; i < store.count && !found; i++)
        if (is_meant(&store.kept[i], group, name) && number-- == 0) {
            *sample = store.kept[i];
            found = true;
        }
    leave();
    return found;
}

bool wr_capture_wait(const char *group, const char *name, size_t count, int64_t deadline_ns)
{
    enter();
    while (count_locked(group, name) < count && wr_clock_monotonic_ns() < deadline_ns)
        wr_condition_wait(&store.change, &store.lock, deadline_ns);
    bool came = count_locked(group, name) >= count;
    leave();
    return came;
}

/* ---- Telling --------------------------------------------------------------------------------- */

static bool make_room_for_answer(void)
{
    if (store.script_end < store.script_room)
        return true;
    size_t room = store.script_room ? store.script_room * 2 : 16;
    struct answer *script = realloc(store.script, room * sizeof *script);
    if (!script)
        return false;
    store.script = script;
    store.script_room = room;
    return true;
}

bool wr_capture_answer(int code, uint32_t done, uint32_t times)
{
    enter();
    bool has_room = !times || make_room_for_answer();
    if (times && has_room)
        store.script[store.script_end++] = (struct answer){code, done, times};
    leave();
    return has_room;
}

void wr_capture_block(bool block)
{
    enter();
    store.block = block;
    wr_condition_wake(&store.change);
    leave();
}

bool wr_capture_is_blocking(void)
{
    enter();
    bool block = store.block;
    leave();
    return block;
}

bool wr_capture_wait_blocked(int64_t deadline_ns)
{
    enter();
    while (!store.blocked && wr_clock_monotonic_ns() < deadline_ns)
        wr_condition_wait(&store.change, &store.lock, deadline_ns);
    bool blocked = store.blocked;
    leave();
    return blocked;
}

size_t wr_capture_tries(void)
{
    enter();
    size_t tries = store.tries;
    leave();
    return tries;
}
