#include "actor.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../support/plain.h"
#include "child.h"
#include "plan.h"
#include "verdict.h"

enum { LONG_EVENT = 200, TOO_LONG = 1025 };

_Atomic uint64_t actor_refused[WEIR_REFUSED_MAX];

/* Configurations that were begun to be put in force, and that are. One thread at a time changes them. */
static _Atomic uint32_t begun, done;
static pthread_mutex_t configuring = PTHREAD_MUTEX_INITIALIZER;

/* ---- Samples --------------------------------------------------------------------------------- */

/* Writes the next sample down. */
static struct world_sample *plan_sample(struct actor *actor, uint32_t group, uint32_t place, uint32_t length)
{
    struct world_actor *mine = &world->actors[actor->id];
    uint32_t number = atomic_load(&mine->count);
    struct world_sample *sample = &mine->samples[number];
    if (number + 1 == WORLD_SAMPLES)
        world_fail("the model has too little room for what actors add");
    if (place == 0)
        actor->lo = atomic_load(&done);
    *sample = (struct world_sample){.lo = actor->lo,
                                    .hi = PLAN_CONFIGS - 1,
                                    .group = (uint8_t)group,
                                    .process = (uint8_t)world_self,
                                    .place = (uint8_t)place,
                                    .length = (uint8_t)length};
    return sample;
}

/* From here on handlers may be given it. */
static uint64_t show_sample(struct actor *actor)
{
    return world_number(actor->id, atomic_fetch_add(&world->actors[actor->id].count, 1));
}

static enum weir_refusal refusal_of(int result)
{
    switch (result) {
    case WEIR_ERR_NAME: return WEIR_REFUSED_NAME;
    case WEIR_ERR_ARGUMENT: return WEIR_REFUSED_ARGUMENT;
    case WEIR_ERR_TOO_LARGE: return WEIR_REFUSED_TOO_LARGE;
    case WEIR_ERR_CLOSED: return WEIR_REFUSED_CLOSED;
    default: world_fail("a call was answered \"%s\": %s", weir_strerror(result), weir_last_error());
    }
}

/* A call that waited for its handlers has its values in the ledger whatever it was told. */
static bool is_taken(int result)
{
    return result == 0 || result == WEIR_ERR_DROPPED || result == WEIR_ERR_FULL || result == WEIR_ERR_TIMEOUT ||
           result == WEIR_ERR_SPOOLED || result == WEIR_ERR_FIFO_NOT_CREATED;
}

/* Which handlers must have been given a sample once all before it is settled: those to which it went for sure.
 */
static uint8_t sure_handlers(const struct world_sample *sample)
{
    unsigned routes = plan_configs[sample->lo].routes[sample->group], withheld = plan_withheld(sample);
    return sample->lo == sample->hi ? (uint8_t)(routes & ~withheld) : 0;
}

/* Where nothing is lost, what was added in this order was given in this order: so the last one is enough. */
static void expect_settled(const struct actor *actor, uint8_t handlers, const char *why)
{
    if (atomic_load(&world->ends[world_self].in_a_hurry))
        return;
    for (int i = 0; i < WORLD_HANDLERS; i++) {
        uint32_t next = atomic_load(&world->logs[world_self][i].next_number[actor->id]);
        if (plan_terms.lossless && handlers >> i & 1 && next < actor->awaited[i] && world_self == 0)
            world_fail("%s, but %s was given samples of actor %u up to %u, not to %u", why, world_handlers[i],
                       actor->id, next, actor->awaited[i]);
    }
}

static void await(struct actor *actor, uint8_t handlers, uint32_t next)
{
    for (int i = 0; i < WORLD_HANDLERS; i++)
        if (handlers >> i & 1)
            actor->awaited[i] = next;
}

/* A call that added the last `count` samples has come back. */
static int conclude(struct actor *actor, uint32_t count, int result)
{
    struct world_actor *mine = &world->actors[actor->id];
    uint32_t end = atomic_load(&mine->count), hi = atomic_load(&begun);
    uint8_t sure = 0;
    for (uint32_t i = end - count; i < end; i++) {
        mine->samples[i].hi = hi;
        mine->samples[i].fate = is_taken(result) ? WORLD_TAKEN : WORLD_REFUSED;
        sure = sure_handlers(&mine->samples[i]);
    }
    if (!is_taken(result)) {
        atomic_fetch_add(&actor_refused[refusal_of(result)], count);
        return result;
    }
    await(actor, sure, end);
    if (result == 0)
        expect_settled(actor, sure & plan_configs[hi].sync, "a call that waits has come back with 0");
    else if (!plan_terms.sync)
        world_fail("a call that does not wait was answered %s", weir_strerror(result));
    return result;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

static weir_stream *draw_stream(struct actor *actor, uint32_t *group)
{
    *group = plain_draw(&actor->state, WORLD_GROUPS);
    return weir_get_stream(world_groups[*group]);
}

static const char *draw_name(struct actor *actor)
{
    static const char *const names[] = {"one", "two", "three", "four", "five", "six"};
    return names[plain_draw(&actor->state, 6)];
}

static int add_value(struct actor *actor)
{
    uint32_t group;
    weir_stream *stream = draw_stream(actor, &group);
    plan_sample(actor, group, 0, 1);
    return conclude(actor, 1, weir_add_value(stream, draw_name(actor), (double)show_sample(actor)));
}

static int add_int(struct actor *actor)
{
    uint32_t group;
    weir_stream *stream = draw_stream(actor, &group);
    plan_sample(actor, group, 0, 1)->integer = true;
    return conclude(actor, 1, weir_add_int(stream, draw_name(actor), (int64_t)show_sample(actor)));
}

static int add_by_metric(struct actor *actor)
{
    uint32_t group, integer = plain_draw(&actor->state, 3) == 0;
    weir_stream *stream = draw_stream(actor, &group);
    weir_metric *metric = weir_get_metric(stream, draw_name(actor));
    plan_sample(actor, group, 0, 1)->integer = integer;
    uint64_t number = show_sample(actor);
    return conclude(actor, 1,
                    integer ? weir_metric_add_int(metric, (int64_t)number)
                            : weir_metric_add(metric, (double)number));
}

static int emit_several(struct actor *actor)
{
    weir_value values[LONG_EVENT];
    uint32_t group, count = 1 + plain_draw(&actor->state, plain_draw(&actor->state, 20) ? 6 : LONG_EVENT);
    weir_stream *stream = draw_stream(actor, &group);
    for (uint32_t i = 0; i < count; i++) {
        plan_sample(actor, group, i, count);
        values[i] = (weir_value){draw_name(actor), (double)show_sample(actor)};
    }
    return conclude(actor, count, weir_emit(stream, values, count));
}

static int add_sample(struct actor *actor)
{
    char text[80];
    uint32_t group;
    weir_stream *stream = draw_stream(actor, &group);
    struct world_sample *sample = plan_sample(actor, group, 0, 1);
    sample->noted = plain_draw(&actor->state, 2);
    sample->cumulative = plain_draw(&actor->state, 2);
    sample->time_ns = plain_draw(&actor->state, 2) ? 1 + (int64_t)plain_draw(&actor->state, 1000000) : 0;
    uint64_t number = show_sample(actor);
    world_note(text, sizeof text, actor->id, (uint32_t)number);
    const weir_sample_spec spec = {.size = sizeof spec,
                                   .name = draw_name(actor),
                                   .value = (double)number,
                                   .time_ns = sample->time_ns,
                                   .cumulative = sample->cumulative,
                                   .metadata = sample->noted ? text : NULL};
    return conclude(actor, 1, weir_add_sample(stream, &spec));
}

void actor_add_some(struct actor *actor)
{
    for (uint32_t i = 0; i < WORLD_GROUPS; i++) {
        plan_sample(actor, i, 0, 1);
        conclude(actor, 1,
                 weir_add_value(weir_get_stream(world_groups[i]), "last", (double)show_sample(actor)));
    }
}

/* Nothing of it may be in the ledger but under `refused`. */
static int add_what_is_refused(struct actor *actor)
{
    static weir_value many[TOO_LONG];
    weir_stream *stream = weir_get_stream("m");
    uint32_t count = 1;
    int result = 0;
    switch (plain_draw(&actor->state, 4)) {
    case 0: result = weir_add_value(stream, "", 1); break;
    case 1: result = weir_add_value(weir_get_stream("m..a"), "one", 1); break;
    case 2: result = weir_add_value(NULL, "one", 1); break;
    default:
        for (count = 0; count < TOO_LONG; count++)
            many[count] = (weir_value){"one", 1};
        result = weir_emit(stream, many, count);
    }
    if (result == 0)
        world_fail("what is wrong was taken");
    atomic_fetch_add(&actor_refused[refusal_of(result)], count);
    return result;
}

/* ---- Everything else ------------------------------------------------------------------------- */

static int put_in_force(uint32_t number)
{
    const char *text = plan_configs[number].text;
    atomic_store(&begun, number);
    int result = weir_configure_text(text, strlen(text));
    if (result != 0 && result != WEIR_ERR_CLOSED)
        world_fail("configuring: %s\n%s", weir_last_error(), text);
    if (result == 0)
        atomic_store(&done, number);
    return result;
}

void actor_configure_first(uint32_t number)
{
    if (put_in_force(number) != 0)
        world_fail("the first configuration: %s", weir_last_error());
}

/* The next one, one that is wrong, or the same again. */
static int configure(struct actor *actor)
{
    static const char wrong[] = "{\"handlers\":{\"a\":{\"type\":\"scripted\"}},\"groups\":{\"*\":\"nobody\"}}";
    pthread_mutex_lock(&configuring);
    uint32_t how = plain_draw(&actor->state, 4), next = atomic_load(&done) + 1;
    int result = 0;
    if (how == 0 && weir_configure_text(wrong, sizeof wrong - 1) == 0)
        world_fail("a wrong configuration was taken");
    if (how == 1)
        result = weir_reload();
    if (how > 1 && next < PLAN_CONFIGS)
        result = put_in_force(next);
    if (result != 0 && result != WEIR_ERR_CLOSED)
        world_fail("reloading: %s", weir_last_error());
    pthread_mutex_unlock(&configuring);
    return result;
}

/* What it says of drops must be true. */
static void check_count_of_drops(void)
{
    const char *words = weir_last_error();
    unsigned long long said = strtoull(words, NULL, 10), dropped = 0;
    for (int i = 0; i < WORLD_HANDLERS; i++) {
        weir_handler_stats stats;
        if (weir_get_handler_stats(world_handlers[i], &stats, sizeof stats) != 0)
            continue;
        for (int k = 0; k < WEIR_DROPPED_MAX; k++)
            dropped += stats.dropped[k];
    }
    if (said == 0 || said > dropped)
        world_fail("a flush says \"%s\", and %llu were", words, dropped);
}

static int flush(struct actor *actor)
{
    static const int64_t patience[] = {0, 3, 30, -1};
    int result = weir_flush(patience[plain_draw(&actor->state, 4)]);
    bool maybe_spooled = plan_terms.spool && result == WEIR_ERR_DROPPED; /* drops are told first */
    if ((result == 0 || result == WEIR_ERR_DROPPED) && !maybe_spooled)
        expect_settled(actor, UINT8_MAX,
                       result ? "a flush was answered WEIR_ERR_DROPPED" : "a flush was answered 0");
    if (result == WEIR_ERR_DROPPED)
        check_count_of_drops();
    else if (result == WEIR_ERR_SPOOLED
                 ? !plan_terms.spool && !plan_terms.journal
                 : result != 0 && result != WEIR_ERR_TIMEOUT && result != WEIR_ERR_FIFO_NOT_CREATED)
        world_fail("a flush was answered %s", weir_strerror(result));
    return 0;
}

static int pause_briefly(struct actor *actor)
{
    nanosleep(&(struct timespec){.tv_nsec = plain_draw(&actor->state, 400000)}, NULL);
    return 0;
}

static int look(struct actor *actor)
{
    (void)actor;
    verdict_of_moment();
    return 0;
}

static int describe(struct actor *actor)
{
    uint32_t group;
    weir_stream *stream = draw_stream(actor, &group);
    weir_describe(stream, draw_name(actor), "ms", "what the model measures");
    return 0;
}

/* ---- The run --------------------------------------------------------------------------------- */

static int act(struct actor *actor)
{
    uint32_t drawn = plain_draw(&actor->state, 1000);
    if (drawn < 300)
        return add_value(actor);
    if (drawn < 450)
        return add_int(actor);
    if (drawn < 650)
        return add_by_metric(actor);
    if (drawn < 780)
        return emit_several(actor);
    if (drawn < 880)
        return add_sample(actor);
    if (drawn < 890)
        return add_what_is_refused(actor);
    if (drawn < 930)
        return pause_briefly(actor);
    if (drawn < 950)
        return look(actor);
    if (drawn < 960)
        return describe(actor);
    if (drawn < 975)
        return flush(actor);
    if (drawn < 995)
        return actor->configures ? configure(actor) : look(actor);
    return actor->forks ? child_fork(actor) : look(actor);
}

void *actor_run(void *argument)
{
    struct actor *actor = argument;
    for (uint32_t i = 0; i < actor->operations; i++)
        if (act(actor) == WEIR_ERR_CLOSED)
            break;
    return NULL;
}
