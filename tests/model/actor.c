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
#include "instruments.h"
#include "plan.h"
#include "scripted.h"
#include "checker.h"

enum { LONG_EVENT = 200, TOO_LONG = 1025 };

_Atomic uint64_t actor_refused[WEIR_REFUSED_MAX];

/* The configuration that is being applied, and the last one that was. Only one thread at a time changes
 * them. */
static _Atomic uint32_t applying, applied;
static pthread_mutex_t configuring = PTHREAD_MUTEX_INITIALIZER;

uint32_t actor_applied(void)
{
    return atomic_load(&applied);
}

uint32_t actor_applying(void)
{
    return atomic_load(&applying);
}

/* ---- Samples --------------------------------------------------------------------------------- */

/* Records the next sample. */
static struct world_sample *plan_sample(struct actor *actor, uint32_t group, uint32_t place, uint32_t length)
{
    struct world_actor *own = &world->actors[actor->id];
    uint32_t number = atomic_load(&own->count);
    struct world_sample *sample = &own->samples[number];
    if (number + 1 == WORLD_SAMPLES)
        world_fail("too many samples for the model");
    if (place == 0)
        actor->lo = atomic_load(&applied);
    *sample = (struct world_sample){.lo = actor->lo,
                                    .hi = PLAN_CONFIGS - 1,
                                    .group = (uint8_t)group,
                                    .process = (uint8_t)world_self,
                                    .place = (uint8_t)place,
                                    .length = (uint8_t)length};
    return sample;
}

/* From here on handlers may receive it. */
static uint64_t publish_sample(struct actor *actor)
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
    default: world_fail("a call returned \"%s\": %s", weir_strerror(result), weir_last_error());
    }
}

void actor_count_refused(int result, uint32_t count)
{
    atomic_fetch_add(&actor_refused[refusal_of(result)], count);
}

/* The values of a synchronous call are in the ledger, whatever it returned. */
static bool is_taken(int result)
{
    return result == 0 || result == WEIR_ERR_DROPPED || result == WEIR_ERR_FULL || result == WEIR_ERR_TIMEOUT ||
           result == WEIR_ERR_SPOOLED || result == SCRIPTED_ERROR;
}

/* The handlers that must have received a sample once all earlier ones are settled: those of its route, if
 * its configuration is known. */
static uint8_t certain_handlers(const struct world_sample *sample)
{
    unsigned routes = plan_configs[sample->lo].routes[sample->group], withheld = plan_withheld(sample);
    return sample->lo == sample->hi ? (uint8_t)(routes & ~withheld) : 0;
}

/* If nothing may be lost, samples are received in the order of adding: it is enough to check the last one. */
static void expect_settled(const struct actor *actor, uint8_t handlers, const char *why)
{
    if (atomic_load(&world->ends[world_self].in_a_hurry))
        return;
    for (int i = 0; i < WORLD_PLAIN_HANDLERS; i++) {
        uint32_t next = atomic_load(&world->logs[world_self][i].next_number[actor->id]);
        if (plan_terms.lossless && handlers >> i & 1 && next < actor->awaited[i] && world_self == 0)
            world_fail("%s, but %s received samples of actor %u up to %u, not to %u", why, world_handlers[i],
                       actor->id, next, actor->awaited[i]);
    }
}

static void set_awaited(struct actor *actor, uint8_t handlers, uint32_t next)
{
    for (int i = 0; i < WORLD_PLAIN_HANDLERS; i++)
        if (handlers >> i & 1)
            actor->awaited[i] = next;
}

/* Records the result of a call that added the last `count` samples. */
static int conclude(struct actor *actor, uint32_t count, int result)
{
    struct world_actor *own = &world->actors[actor->id];
    uint32_t end = atomic_load(&own->count), hi = atomic_load(&applying);
    uint8_t certain = 0;
    for (uint32_t i = end - count; i < end; i++) {
        own->samples[i].hi = hi;
        own->samples[i].fate = is_taken(result) ? WORLD_TAKEN : WORLD_REFUSED;
        certain = certain_handlers(&own->samples[i]);
    }
    if (!is_taken(result)) {
        actor_count_refused(result, count);
        return result;
    }
    set_awaited(actor, certain, end);
    if (result == 0)
        expect_settled(actor, certain & plan_configs[hi].sync, "a synchronous call has returned 0");
    else if (!plan_terms.sync)
        world_fail("an asynchronous call returned %s", weir_strerror(result));
    return result;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

static weir_stream *draw_stream(struct actor *actor, uint32_t *group)
{
    *group = plain_draw(&actor->state, WORLD_PLAIN_GROUPS);
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
    return conclude(actor, 1, weir_add_value(stream, draw_name(actor), (double)publish_sample(actor)));
}

static int add_int(struct actor *actor)
{
    uint32_t group;
    weir_stream *stream = draw_stream(actor, &group);
    plan_sample(actor, group, 0, 1)->integer = true;
    return conclude(actor, 1, weir_add_int(stream, draw_name(actor), (int64_t)publish_sample(actor)));
}

static int add_by_metric(struct actor *actor)
{
    uint32_t group, integer = plain_draw(&actor->state, 3) == 0;
    weir_stream *stream = draw_stream(actor, &group);
    weir_metric *metric = weir_get_metric(stream, draw_name(actor));
    plan_sample(actor, group, 0, 1)->integer = integer;
    uint64_t number = publish_sample(actor);
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
        values[i] = (weir_value){draw_name(actor), (double)publish_sample(actor)};
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
    sample->integer = sample->noted != sample->cumulative;
    sample->time_ns = plain_draw(&actor->state, 2) ? 1 + (int64_t)plain_draw(&actor->state, 1000000) : 0;
    uint64_t number = publish_sample(actor);
    world_note(text, sizeof text, actor->id, (uint32_t)number);
    const weir_sample_spec spec = {.size = sizeof spec,
                                   .name = draw_name(actor),
                                   .kind = sample->integer ? WEIR_KIND_INT : WEIR_KIND_DOUBLE,
                                   .value = sample->integer ? 0 : (double)number,
                                   .integer = sample->integer ? (int64_t)number : 0,
                                   .time_ns = sample->time_ns,
                                   .cumulative = sample->cumulative,
                                   .metadata = sample->noted ? text : NULL};
    return conclude(actor, 1, weir_add(stream, &spec));
}

void actor_add_some(struct actor *actor)
{
    for (uint32_t i = 0; i < WORLD_PLAIN_GROUPS; i++) {
        plan_sample(actor, i, 0, 1);
        conclude(actor, 1,
                 weir_add_value(weir_get_stream(world_groups[i]), "last", (double)publish_sample(actor)));
    }
    instruments_add_to_all(actor);
}

/* It may be counted only as refused. */
static int add_invalid(struct actor *actor)
{
    weir_value many[TOO_LONG]; /* 16 KiB */
    weir_stream *stream = weir_get_stream("m");
    uint32_t count = 1;
    int result = 0;
    switch (plain_draw(&actor->state, 5)) {
    case 0: result = weir_add_value(stream, "", 1); break;
    case 1: result = weir_add_value(weir_get_stream("m..a"), "one", 1); break;
    case 2: result = weir_add_value(NULL, "one", 1); break;
    case 3: result = instruments_add_invalid(actor); break;
    default:
        for (count = 0; count < TOO_LONG; count++)
            many[count] = (weir_value){"one", 1};
        result = weir_emit(stream, many, count);
    }
    if (result == 0)
        world_fail("an invalid call was accepted");
    actor_count_refused(result, count);
    return result;
}

/* ---- Everything else ------------------------------------------------------------------------- */

static int apply(uint32_t number)
{
    const char *text = plan_configs[number].text;
    atomic_store(&applying, number);
    int result = weir_configure_text(text, strlen(text));
    if (result != 0 && result != WEIR_ERR_CLOSED)
        world_fail("configuring: %s\n%s", weir_last_error(), text);
    if (result == 0)
        atomic_store(&applied, number);
    return result;
}

void actor_configure_first(uint32_t number)
{
    if (apply(number) != 0)
        world_fail("the first configuration: %s", weir_last_error());
}

/* The next configuration, an invalid one, or the same again. */
static int configure(struct actor *actor)
{
    static const char wrong[] = "{\"handlers\":{\"a\":{\"type\":\"scripted\"}},\"groups\":{\"*\":\"nobody\"}}";
    pthread_mutex_lock(&configuring);
    uint32_t action = plain_draw(&actor->state, 4), next = atomic_load(&applied) + 1;
    int result = 0;
    if (action == 0 && weir_configure_text(wrong, sizeof wrong - 1) == 0)
        world_fail("an invalid configuration was accepted");
    if (action == 1)
        result = weir_reload();
    if (action > 1 && next < PLAN_CONFIGS)
        result = apply(next);
    if (result != 0 && result != WEIR_ERR_CLOSED)
        world_fail("reloading: %s", weir_last_error());
    pthread_mutex_unlock(&configuring);
    return result;
}

/* The number of drops in the message must be possible. */
static void check_reported_drops(void)
{
    const char *message = weir_last_error();
    unsigned long long reported = strtoull(message, NULL, 10), dropped = 0;
    for (int i = 0; i < WORLD_HANDLERS; i++) {
        weir_handler_stats stats;
        if (weir_get_handler_stats(world_handlers[i], &stats, sizeof stats) != 0)
            continue;
        for (int k = 0; k < WEIR_DROPPED_MAX; k++)
            dropped += stats.dropped[k];
    }
    if (reported == 0 || reported > dropped)
        world_fail("a flush reports \"%s\", but %llu values were dropped", message, dropped);
}

static void expect_flushed(const struct actor *actor, const char *why)
{
    expect_settled(actor, UINT8_MAX, why);
    if (plan_terms.lossless && world_self == 0 && !atomic_load(&world->ends[0].in_a_hurry))
        instruments_expect_level(actor, why);
}

static int flush(struct actor *actor)
{
    static const int64_t timeouts_ms[] = {0, 3, 30, -1};
    int result = weir_flush(timeouts_ms[plain_draw(&actor->state, 4)]);
    bool maybe_spooled = plan_terms.spool && result == WEIR_ERR_DROPPED; /* drops take precedence */
    const char *why = result ? "a flush returned WEIR_ERR_DROPPED" : "a flush returned 0";
    if ((result == 0 || result == WEIR_ERR_DROPPED) && !maybe_spooled)
        expect_flushed(actor, why);
    if (result == WEIR_ERR_DROPPED)
        check_reported_drops();
    else if (result == WEIR_ERR_SPOOLED ? !plan_terms.spool && !plan_terms.journal
                                        : result != 0 && result != WEIR_ERR_TIMEOUT && result != SCRIPTED_ERROR)
        world_fail("a flush returned %s", weir_strerror(result));
    return 0;
}

static int pause_briefly(struct actor *actor)
{
    nanosleep(&(struct timespec){.tv_nsec = plain_draw(&actor->state, 400000)}, NULL);
    return 0;
}

static int check_ledger(struct actor *actor)
{
    (void)actor;
    checker_check_now();
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
    uint32_t drawn = plain_draw(&actor->state, 1300);
    if (drawn >= 1000)
        return instruments_add(actor);
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
        return add_invalid(actor);
    if (drawn < 930)
        return pause_briefly(actor);
    if (drawn < 950)
        return check_ledger(actor);
    if (drawn < 960)
        return describe(actor);
    if (drawn < 975)
        return flush(actor);
    if (drawn < 995)
        return actor->configures ? configure(actor) : check_ledger(actor);
    return actor->forks ? child_fork(actor) : check_ledger(actor);
}

void *actor_run(void *argument)
{
    struct actor *actor = argument;
    for (uint32_t i = 0; i < actor->operations; i++)
        if (act(actor) == WEIR_ERR_CLOSED)
            break;
    return NULL;
}
