#include "scripted.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/handler.h>

#include "../support/plain.h"
#include "plan.h"
#include "tally.h"
#include "world.h"

struct scripted_behaviour scripted_behaviour;

struct scripted {
    const weir_host *host;
    pthread_mutex_t *recording;
    struct world_log *log;
    uint64_t state;   /* random state of the script */
    uint32_t down;    /* so many further results are failures */
    uint64_t settled; /* one past the last settled sequence number */
    char origin[33];  /* of that: summaries have one of their own */
    bool is_open;
    bool continues;      /* a summary's parts: the core may offer the rest before it settles these */
    struct tally *tally; /* of instruments; NULL: its handler gets samples */
};

/* Held while what a handler receives is recorded. Of each process its own: a child does not inherit one that
 * a thread of its parent held. */
static pthread_mutex_t recordings[WORLD_PROCESSES][WORLD_HANDLERS];

/* ---- Life cycle ------------------------------------------------------------------------------ */

static struct tally *make_tally(const weir_host *host, int handler)
{
    struct tally *tally = handler < WORLD_PLAIN_HANDLERS ? NULL : calloc(1, sizeof *tally);
    if (tally) {
        tally->host = host;
        tally->handler = handler;
        tally->takes_parts = handler == WORLD_PARTED;
    }
    return tally;
}

static void *create(const weir_host *host, const void *options)
{
    static _Atomic uint32_t created;
    struct scripted *self = calloc(1, sizeof *self);
    int handler = host->name[0] - 'a';
    (void)options;
    if (!self || handler < 0 || handler >= WORLD_HANDLERS) {
        free(self);
        host->refuse(host, "", "unknown handler");
        return NULL;
    }
    self->tally = make_tally(host, handler);
    self->host = host;
    self->recording = &recordings[world_self][handler];
    self->log = &world->logs[world_self][handler];
    self->state = plan_terms.seed * 1000003 + (uint64_t)handler * 101 + world_self * 7 + ++created;
    return self;
}

static void destroy(void *instance)
{
    struct scripted *self = instance;
    if (self->is_open)
        world_fail("handler %s is destroyed while it is open", self->host->name);
    free(self->tally);
    free(self);
}

static bool must_fail(struct scripted *self)
{
    if (self->down)
        return self->down--;
    return scripted_behaviour.failure_odds && plain_draw(&self->state, scripted_behaviour.failure_odds) == 0;
}

static void open_one(void *instance, weir_outcome *outcome)
{
    struct scripted *self = instance;
    if (self->is_open)
        world_fail("handler %s is opened twice", self->host->name);
    if (must_fail(self))
        outcome->code = WEIR_OUTCOME_RETRY;
    self->is_open = outcome->code == WEIR_OUTCOME_OK;
}

static void close_one(void *instance)
{
    struct scripted *self = instance;
    if (!self->is_open)
        world_fail("handler %s is closed, but was not open", self->host->name);
    self->is_open = false;
}

static void flush(void *instance, int64_t timeout_ms, weir_outcome *outcome)
{
    (void)timeout_ms;
    if (must_fail(instance))
        outcome->code = WEIR_OUTCOME_RETRY;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static uint64_t read_number(const weir_sample *sample)
{
    return sample->kind == WEIR_KIND_INT ? (uint64_t)sample->value.i64 : (uint64_t)sample->value.f64;
}

static void check_kind(const weir_sample *sample, const struct world_sample *tried, const char *where)
{
    if ((sample->kind == WEIR_KIND_INT) != tried->integer)
        world_fail("%s is of kind %u", where, sample->kind);
    if (tried->integer && plan_terms.picky && where[0] == 'a' + WORLD_PLAIN_HANDLERS - 1)
        world_fail("%s is of a kind that its handler does not accept", where);
    if (((sample->flags & WEIR_SAMPLE_CUMULATIVE) != 0) != tried->cumulative)
        world_fail("%s has the flags %x", where, sample->flags);
    if (tried->time_ns && sample->time_ns != tried->time_ns)
        world_fail("%s has the time %" PRId64 ", not %" PRId64, where, sample->time_ns, tried->time_ns);
}

static void check_note(const weir_batch *batch, const weir_sample *sample, const struct world_sample *tried,
                       const char *where)
{
    char expected[80];
    uint64_t number = read_number(sample);
    world_note(expected, sizeof expected, (uint32_t)(number >> 32), (uint32_t)number);
    const char *note = sample->note ? batch->notes[sample->note] : NULL;
    if (!note != !tried->noted || (note && strcmp(note, expected) != 0))
        world_fail("%s has the metadata %s", where, note ? note : "NULL");
}

/* An event is complete, and its samples have the same time. */
static void check_event(const weir_batch *batch, uint32_t i, const struct world_sample *tried,
                        const char *where)
{
    const weir_sample *sample = &batch->samples[i];
    bool more = sample->flags & WEIR_SAMPLE_MORE, first = tried->place == 0;
    if (more != (tried->place + 1 < tried->length) || (more && i + 1 == batch->count))
        world_fail("%s is number %u of %u in its event: the event was split after it", where, tried->place,
                   tried->length);
    if (!first && (i == 0 || read_number(sample) != read_number(sample - 1) + 1))
        world_fail("%s is number %u of %u in its event: the event was split before it", where, tried->place,
                   tried->length);
    if (!first && sample->time_ns != sample[-1].time_ns)
        world_fail("%s does not have the time of its event", where);
}

/* Values that a process leaves are adopted by the next process that starts, possibly by its own child. */
static bool can_be_adopted(uint32_t process)
{
    return world_self == WORLD_LAST ||
           ((plan_terms.spool || plan_terms.journal) && atomic_load(&world->ends[process].leaves));
}

static void check_sample(const struct scripted *self, const weir_batch *batch, uint32_t i)
{
    const weir_sample *sample = &batch->samples[i];
    const weir_series *series = weir_batch_series(batch, sample);
    uint64_t number = read_number(sample);
    uint32_t actor = (uint32_t)(number >> 32), place = (uint32_t)number;
    char where[80];
    snprintf(where, sizeof where, "%s: sample %u of actor %u", self->host->name, place, actor);
    if (actor >= WORLD_ACTORS || place >= atomic_load(&world->actors[actor].count))
        world_fail("%s was never added", where);
    const struct world_sample *tried = &world->actors[actor].samples[place];
    if (tried->process != world_self && !can_be_adopted(tried->process))
        world_fail("%s is of process %u", where, tried->process);
    if (strcmp(series->group, world_groups[tried->group]) != 0)
        world_fail("%s is of group %s", where, series->group);
    check_kind(sample, tried, where);
    check_note(batch, sample, tried, where);
    check_event(batch, i, tried, where);
}

/* Samples of one actor arrive in order and only once; a repeated batch starts after the settled samples. */
static void check_batch(struct scripted *self, const weir_batch *batch)
{
    uint32_t next[WORLD_ACTORS];
    for (int i = 0; i < WORLD_ACTORS; i++)
        next[i] = atomic_load(&self->log->next_number[i]);
    for (uint32_t i = 0; i < batch->count; i++) {
        uint64_t number = read_number(&batch->samples[i]);
        check_sample(self, batch, i);
        uint32_t actor = (uint32_t)(number >> 32), place = (uint32_t)number;
        if (place < next[actor])
            world_fail("%s: sample %u of actor %u arrives after %u", self->host->name, place, actor,
                       next[actor] - 1);
        next[actor] = place + 1;
    }
}

static void check_call(const struct scripted *self, const weir_batch *batch)
{
    if (!self->is_open)
        world_fail("handler %s receives samples, but is not open", self->host->name);
    if (batch->count == 0)
        world_fail("handler %s receives no samples", self->host->name);
}

static void check_sequence(const struct scripted *self, const weir_batch *batch)
{
    bool is_same = strcmp(batch->origin, self->origin) == 0;
    if (!plan_terms.spool && !plan_terms.journal && is_same && batch->sequence < self->settled)
        world_fail("%s: samples from %" PRIu64 " on of %s are offered, but %" PRIu64 " are settled",
                   self->host->name, batch->sequence, batch->origin, self->settled);
}

/* ---- Results --------------------------------------------------------------------------------- */

/* Rounds down to complete events, like the core. It keeps parts of a summary to itself. */
static uint32_t round_down(const weir_batch *batch, uint32_t done, bool in_parts)
{
    while (!in_parts && done && done < batch->count && batch->samples[done - 1].flags & WEIR_SAMPLE_MORE)
        done--;
    return done;
}

static void set_failure(struct scripted *self, const weir_batch *batch, bool in_parts, weir_outcome *outcome)
{
    static const int codes[] = {WEIR_OUTCOME_RETRY, WEIR_OUTCOME_RETRY, WEIR_OUTCOME_REOPEN, WEIR_OUTCOME_OK,
                                WEIR_OUTCOME_DROP};
    outcome->code = codes[plain_draw(&self->state, scripted_behaviour.rejects ? 5 : 4)];
    outcome->done = plain_draw(&self->state, batch->count + 1);
    if (scripted_behaviour.fails && plain_draw(&self->state, 40) == 0)
        outcome->code = WEIR_OUTCOME_FAILED;
    if (outcome->code == WEIR_OUTCOME_OK && round_down(batch, outcome->done, in_parts) == 0)
        outcome->code = WEIR_OUTCOME_RETRY;
    if (plain_draw(&self->state, 4) == 0)
        self->down = plain_draw(&self->state, 12);
    if (scripted_behaviour.fails_waiting_calls && outcome->code == WEIR_OUTCOME_RETRY &&
        plain_draw(&self->state, 4) == 0)
        outcome->error = SCRIPTED_ERROR;
    snprintf(outcome->reason, sizeof outcome->reason, "scripted failure");
}

static void delay(struct scripted *self)
{
    const struct timespec duration = {.tv_nsec = plain_draw(&self->state, 3000000)};
    uint32_t action = plain_draw(&self->state, 24);
    if (action == 0)
        nanosleep(&duration, NULL);
    else if (action == 1)
        self->host->wait(self->host, 1 + plain_draw(&self->state, 3));
}

/* Each sample. */
static void record_samples(struct scripted *self, const weir_batch *batch, uint32_t end, uint32_t delivered)
{
    struct world_log *log = self->log;
    uint32_t count = atomic_load(&log->count);
    if (count + end > WORLD_ENTRIES)
        world_fail("too many received samples for the model");
    atomic_store(&log->last_batch, count);
    for (uint32_t i = 0; i < end; i++) {
        uint64_t number = read_number(&batch->samples[i]);
        uint32_t actor = (uint32_t)(number >> 32), place = (uint32_t)number;
        log->entries[count + i] =
            (struct world_entry){place, (uint8_t)actor, i < delivered ? WORLD_DELIVERED : WORLD_REJECTED};
        atomic_store(&log->next_number[actor], place + 1);
    }
    atomic_store(&log->count, count + end);
}

static void record(struct scripted *self, const weir_batch *batch, uint32_t end, uint32_t delivered)
{
    struct world_log *log = self->log;
    uint64_t values[3] = {0, delivered, end - delivered}, before = atomic_load(&log->values);
    if (!self->continues)
        atomic_store(&log->values_before, before);
    if (self->tally) {
        memset(values, 0, sizeof values);
        tally_settle(self->tally, batch, end, delivered, values);
    } else {
        record_samples(self, batch, end, delivered);
    }
    for (int i = WORLD_DELIVERED; i <= WORLD_REJECTED; i++) {
        atomic_store(&log->settled_last[i], values[i] + (self->continues ? log->settled_last[i] : 0));
        atomic_fetch_add(&log->settled[i], values[i]);
    }
    atomic_store(&log->values, before + values[WORLD_DELIVERED] + values[WORLD_REJECTED]);
}

static void emit(void *instance, const weir_batch *batch, weir_outcome *outcome)
{
    struct scripted *self = instance;
    bool in_parts = self->tally && tally_weigh(self->tally, batch) && self->tally->takes_parts;
    check_call(self, batch);
    check_sequence(self, batch);
    if (!self->tally)
        check_batch(self, batch);
    if (scripted_behaviour.failure_odds)
        delay(self);
    outcome->done = batch->count;
    if (must_fail(self))
        set_failure(self, batch, in_parts, outcome);
    uint32_t done = round_down(batch, outcome->done, in_parts), end = done;
    if (scripted_behaviour.rejects && done && plain_draw(&self->state, 20) == 0)
        outcome->rejected = plain_draw(&self->state, done + 1);
    if (outcome->code == WEIR_OUTCOME_DROP)
        end = batch->count;
    self->settled = batch->sequence + end;
    snprintf(self->origin, sizeof self->origin, "%s", batch->origin);
    pthread_mutex_lock(self->recording);
    record(self, batch, end, done - outcome->rejected);
    pthread_mutex_unlock(self->recording);
    self->continues = in_parts && outcome->code == WEIR_OUTCOME_OK && done < batch->count;
}

/* ---- The types ------------------------------------------------------------------------------- */

#define TYPE(word, taken)                                                                                      \
    {                                                                                                          \
        .size = sizeof(weir_handler_type), .abi = WEIR_ABI, .name = (word),                                    \
        .summary = "behaves as scripted, for tests", .kinds = (taken), .create = create, .open = open_one,     \
        .emit = emit, .flush = flush, .close = close_one, .destroy = destroy                                   \
    }

static const weir_handler_type types[] = {
    TYPE("scripted", 0),
    TYPE("picky", WEIR_KINDS_DOUBLE),
    TYPE("summing", WEIR_KINDS_DOUBLE | WEIR_KINDS_INT | WEIR_KINDS_SUMMARY),
    TYPE("parted", WEIR_KINDS_DOUBLE | WEIR_KINDS_INT),
};

void scripted_stop_recording(void)
{
    for (int i = 0; i < WORLD_HANDLERS; i++)
        pthread_mutex_lock(&recordings[world_self][i]);
}

void scripted_register(void)
{
    for (int i = 0; i < WORLD_PROCESSES; i++)
        for (int k = 0; k < WORLD_HANDLERS; k++)
            pthread_mutex_init(&recordings[i][k], NULL);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (weir_register_handler_type(&types[i], NULL) != 0)
            world_fail("weir_register_handler_type: %s", weir_last_error());
}
