#include "scripted.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/handler.h>

#include "../support/plain.h"
#include "plan.h"
#include "world.h"

enum { TOLD = WEIR_ERR_FIFO_NOT_CREATED };

struct scripted_temper scripted_temper;

struct scripted {
    const weir_host *host;
    struct world_log *log;
    uint64_t state;   /* of the script */
    uint32_t down;    /* so many answers more are failures */
    uint64_t settled; /* the sequence behind what was settled last */
    bool is_open;
};

/* ---- The life of one ------------------------------------------------------------------------- */

static void *create(const weir_host *host, const void *options)
{
    static _Atomic uint32_t made;
    struct scripted *self = calloc(1, sizeof *self);
    int handler = host->name[0] - 'a';
    (void)options;
    if (!self || handler < 0 || handler >= WORLD_HANDLERS) {
        free(self);
        host->refuse(host, "", "there is no such handler in the model");
        return NULL;
    }
    self->host = host;
    self->log = &world->logs[world_self][handler];
    self->state = plan_terms.seed * 1000003 + (uint64_t)handler * 101 + world_self * 7 + ++made;
    return self;
}

static void destroy(void *instance)
{
    struct scripted *self = instance;
    if (self->is_open)
        world_fail("handler %s is destroyed while it is open", self->host->name);
    free(self);
}

static bool has_trouble(struct scripted *self)
{
    if (self->down)
        return self->down--;
    return scripted_temper.trouble && plain_draw(&self->state, scripted_temper.trouble) == 0;
}

static void open_one(void *instance, weir_outcome *outcome)
{
    struct scripted *self = instance;
    if (self->is_open)
        world_fail("handler %s is opened twice", self->host->name);
    if (has_trouble(self))
        outcome->code = WEIR_OUTCOME_RETRY;
    self->is_open = outcome->code == WEIR_OUTCOME_OK;
}

static void close_one(void *instance)
{
    struct scripted *self = instance;
    if (!self->is_open)
        world_fail("handler %s is closed, and was not open", self->host->name);
    self->is_open = false;
}

static void flush(void *instance, int64_t timeout_ms, weir_outcome *outcome)
{
    (void)timeout_ms;
    if (has_trouble(instance))
        outcome->code = WEIR_OUTCOME_RETRY;
}

/* ---- What it is given ------------------------------------------------------------------------ */

/* The number in the sample's value. */
static uint64_t read_number(const weir_sample *sample)
{
    return sample->kind == WEIR_KIND_INT ? (uint64_t)sample->value.i64 : (uint64_t)sample->value.f64;
}

static void check_kind(const weir_sample *sample, const struct world_sample *tried, const char *where)
{
    if ((sample->kind == WEIR_KIND_INT) != tried->integer)
        world_fail("%s is of kind %u", where, sample->kind);
    if (tried->integer && plan_terms.picky && where[0] == 'a' + WORLD_HANDLERS - 1)
        world_fail("%s is of a kind that its handler does not take", where);
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

/* An event is whole, and its samples share one time. */
static void check_event(const weir_batch *batch, uint32_t i, const struct world_sample *tried,
                        const char *where)
{
    const weir_sample *sample = &batch->samples[i];
    bool more = sample->flags & WEIR_SAMPLE_MORE, first = tried->place == 0;
    if (more != (tried->place + 1 < tried->length) || (more && i + 1 == batch->count))
        world_fail("%s is number %u of %u in its event: the event was split behind it", where, tried->place,
                   tried->length);
    if (!first && (i == 0 || read_number(sample) != read_number(sample - 1) + 1))
        world_fail("%s is number %u of %u in its event: the event was split before it", where, tried->place,
                   tried->length);
    if (!first && sample->time_ns != sample[-1].time_ns)
        world_fail("%s has another time than the rest of its event", where);
}

/* What processes leave behind goes to whoever comes to it first, and be it a child of theirs. */
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

/* Those of one actor come in their order, and none twice; what is offered again begins behind what was settled.
 */
static void check_batch(struct scripted *self, const weir_batch *batch)
{
    uint32_t next[WORLD_ACTORS];
    if (!self->is_open)
        world_fail("handler %s is given samples, and is not open", self->host->name);
    for (int i = 0; i < WORLD_ACTORS; i++)
        next[i] = atomic_load(&self->log->next_number[i]);
    for (uint32_t i = 0; i < batch->count; i++) {
        uint64_t number = read_number(&batch->samples[i]);
        check_sample(self, batch, i);
        uint32_t actor = (uint32_t)(number >> 32), place = (uint32_t)number;
        if (place < next[actor])
            world_fail("%s: sample %u of actor %u comes after %u", self->host->name, place, actor,
                       next[actor] - 1);
        next[actor] = place + 1;
    }
    if (!plan_terms.spool && !plan_terms.journal && batch->sequence < self->settled)
        world_fail("%s: samples from %" PRIu64 " on are offered, where %" PRIu64 " are settled",
                   self->host->name, batch->sequence, self->settled);
}

/* ---- What it answers ------------------------------------------------------------------------- */

/* Whole events only, as the core takes it. */
static uint32_t round_down(const weir_batch *batch, uint32_t done)
{
    while (done && done < batch->count && batch->samples[done - 1].flags & WEIR_SAMPLE_MORE)
        done--;
    return done;
}

static void fail_somehow(struct scripted *self, const weir_batch *batch, weir_outcome *outcome)
{
    static const int codes[] = {WEIR_OUTCOME_RETRY, WEIR_OUTCOME_RETRY, WEIR_OUTCOME_REOPEN, WEIR_OUTCOME_OK,
                                WEIR_OUTCOME_DROP};
    outcome->code = codes[plain_draw(&self->state, scripted_temper.rejects ? 5 : 4)];
    outcome->done = plain_draw(&self->state, batch->count + 1);
    if (scripted_temper.fails && plain_draw(&self->state, 40) == 0)
        outcome->code = WEIR_OUTCOME_FAILED;
    if (outcome->code == WEIR_OUTCOME_OK && round_down(batch, outcome->done) == 0)
        outcome->code = WEIR_OUTCOME_RETRY;
    if (plain_draw(&self->state, 4) == 0)
        self->down = plain_draw(&self->state, 12);
    if (scripted_temper.tells && outcome->code == WEIR_OUTCOME_RETRY && plain_draw(&self->state, 4) == 0)
        weir_outcome_set_error(outcome, TOLD);
    snprintf(outcome->reason, sizeof outcome->reason, "by its script");
}

static void hesitate(struct scripted *self)
{
    const struct timespec moment = {.tv_nsec = plain_draw(&self->state, 3000000)};
    uint32_t how = plain_draw(&self->state, 24);
    if (how == 0)
        nanosleep(&moment, NULL);
    else if (how == 1)
        self->host->wait(self->host, 1 + plain_draw(&self->state, 3));
}

static void write_down(struct scripted *self, const weir_batch *batch, uint32_t end, uint32_t delivered)
{
    struct world_log *log = self->log;
    uint32_t count = atomic_load(&log->count);
    if (count + end > WORLD_ENTRIES)
        world_fail("the model has too little room for what handlers are given");
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

static void emit(void *instance, const weir_batch *batch, weir_outcome *outcome)
{
    struct scripted *self = instance;
    check_batch(self, batch);
    if (scripted_temper.trouble)
        hesitate(self);
    if (has_trouble(self))
        fail_somehow(self, batch, outcome);
    uint32_t done = round_down(batch, outcome->done), end = done;
    if (scripted_temper.rejects && done && plain_draw(&self->state, 20) == 0)
        outcome->rejected = plain_draw(&self->state, done + 1);
    if (outcome->code == WEIR_OUTCOME_DROP)
        end = batch->count;
    self->settled = batch->sequence + end;
    write_down(self, batch, end, done - outcome->rejected);
}

/* ---- The types ------------------------------------------------------------------------------- */

#define TYPE(word, taken)                                                                                      \
    {                                                                                                          \
        .size = sizeof(weir_handler_type), .abi = WEIR_ABI, .name = (word), .summary = "answers by a script",  \
        .kinds = (taken), .create = create, .open = open_one, .emit = emit, .flush = flush,                    \
        .close = close_one, .destroy = destroy                                                                 \
    }

static const weir_handler_type types[] = {TYPE("scripted", 0), TYPE("picky", WEIR_KINDS_DOUBLE)};

void scripted_register(void)
{
    for (int i = 0; i < 2; i++)
        if (weir_register_handler_type(&types[i], NULL) != 0)
            world_fail("no handler type: %s", weir_last_error());
}
