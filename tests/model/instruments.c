#include "instruments.h"

#include <math.h>
#include <stdio.h>

#include "../support/plain.h"
#include "plan.h"

enum { BURST = 12, LARGEST_STEP = 5, LARGEST_LEVEL = 1000 };

static const weir_label label = {"zone", "z"};

/* ---- Names ----------------------------------------------------------------------------------- */

static weir_stream *stream_of(uint32_t series)
{
    const char *group = world_groups[world_group_of(series)];
    bool labeled = series < WORLD_LEVELS && series % WORLD_LABELS;
    return labeled ? weir_get_stream_labeled(group, &label, 1) : weir_get_stream(group);
}

static weir_metric *level_of(uint32_t actor)
{
    char name[16];
    snprintf(name, sizeof name, "level%u", actor);
    return weir_get_gauge(weir_get_stream(world_groups[WORLD_PLAIN_GROUPS]), name);
}

static weir_metric *metric_of(uint32_t series)
{
    weir_stream *stream = stream_of(series);
    enum world_name name = world_name_of(series);
    switch (name) {
    case WORLD_HITS: return weir_get_counter(stream, world_names[name]);
    case WORLD_SIZE:
        return weir_get_histogram(stream, world_names[name], world_bounds,
                                  sizeof world_bounds / sizeof *world_bounds);
    case WORLD_WAIT: return weir_get_histogram(stream, world_names[name], NULL, 0);
    case WORLD_OPEN: return weir_get_gauge(stream, world_names[name]);
    case WORLD_RATE: return weir_get_metric(stream, world_names[name]);
    default: return level_of(series - WORLD_LEVELS);
    }
}

void instruments_declare(void)
{
    for (uint32_t i = 0; i < WORLD_LEVELS; i += WORLD_LABELS)
        metric_of(i);
}

/* ---- Records --------------------------------------------------------------------------------- */

/* Records the next value. */
static void plan_value(struct actor *actor, uint32_t series, int value)
{
    struct world_actor *own = &world->actors[actor->id];
    uint32_t number = atomic_load(&own->value_count);
    if (number + 1 == WORLD_VALUES)
        world_fail("too many values for the model");
    own->values[number] = (struct world_value){.lo = actor_applied(),
                                               .hi = PLAN_CONFIGS - 1,
                                               .series = (uint8_t)series,
                                               .process = (uint8_t)world_self,
                                               .value = (int16_t)value};
    atomic_fetch_add(&own->value_count, 1);
}

/* Records the result of a call that added the last `count` values. */
static int conclude(struct actor *actor, uint32_t count, int result)
{
    struct world_actor *own = &world->actors[actor->id];
    uint32_t end = atomic_load(&own->value_count), hi = actor_applying();
    if (result != 0 && result != WEIR_ERR_CLOSED)
        world_fail("a call with an instrument returned %s: %s", weir_strerror(result), weir_last_error());
    for (uint32_t i = end - count; i < end; i++) {
        own->values[i].hi = hi;
        own->values[i].fate = result == 0 ? WORLD_TAKEN : WORLD_REFUSED;
    }
    if (result != 0)
        actor_count_refused(result, count);
    return result;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

/* The labels of a call lead to the same series as those of a stream. */
static int add_by_name(struct actor *actor, uint32_t series, int value)
{
    bool labeled = series % WORLD_LABELS;
    const char *name = world_names[world_name_of(series) % WORLD_NAMES];
    if (labeled && plain_draw(&actor->state, 2))
        return weir_add_value_labeled(stream_of(series - 1), name, value, &label, 1);
    if (world_name_of(series) == WORLD_HITS)
        return weir_count(stream_of(series), name, value);
    return plain_draw(&actor->state, 2) ? weir_add_int(stream_of(series), name, value)
                                        : weir_add_value(stream_of(series), name, value);
}

static int add_one(struct actor *actor, uint32_t series)
{
    int value = (int)plain_draw(&actor->state, WORLD_MOST + 1);
    plan_value(actor, series, value);
    if (plain_draw(&actor->state, 3) == 0)
        return conclude(actor, 1, add_by_name(actor, series, value));
    weir_metric *metric = metric_of(series);
    return conclude(actor, 1,
                    plain_draw(&actor->state, 4) ? weir_metric_add(metric, value)
                                                 : weir_metric_add_int(metric, value));
}

static int move_gauge(struct actor *actor, uint32_t series)
{
    int step = (int)plain_draw(&actor->state, 2 * LARGEST_STEP + 1) - LARGEST_STEP;
    plan_value(actor, series, step);
    return conclude(actor, 1, weir_metric_change(metric_of(series), step));
}

/* The handlers that must get the level, if its configuration is known. */
static uint8_t certain_handlers(const struct world_value *value)
{
    return value->lo == value->hi ? plan_configs[value->lo].routes[world_group_of(value->series)] : 0;
}

/* Sets the gauge that no other thread changes, or moves it to the same level. */
static int set_level(struct actor *actor)
{
    struct world_actor *own = &world->actors[actor->id];
    weir_metric *metric = level_of(actor->id);
    int level = (int)plain_draw(&actor->state, LARGEST_LEVEL);
    plan_value(actor, WORLD_LEVELS + actor->id, level);
    int result = conclude(actor, 1,
                          plain_draw(&actor->state, 3) ? weir_metric_add(metric, level)
                                                       : weir_metric_change(metric, level - own->level));
    if (result == 0) {
        own->level = level;
        own->has_level = true;
        actor->level_handlers = certain_handlers(&own->values[atomic_load(&own->value_count) - 1]);
    }
    return result;
}

/* Several values of one event. */
static int emit_event(struct actor *actor, uint32_t group, bool labeled)
{
    static const enum world_name names[] = {WORLD_HITS, WORLD_SIZE, WORLD_RATE};
    enum { COUNT = sizeof names / sizeof *names };
    weir_value values[COUNT];
    for (int i = 0; i < COUNT; i++) {
        int value = (int)plain_draw(&actor->state, WORLD_MOST + 1);
        values[i] = (weir_value){world_names[names[i]], value};
        plan_value(actor, world_series(group, names[i], labeled), value);
    }
    return conclude(actor, COUNT,
                    weir_emit(stream_of(world_series(group, WORLD_HITS, labeled)), values, COUNT));
}

static int add_at_random(struct actor *actor)
{
    uint32_t group = WORLD_PLAIN_GROUPS + plain_draw(&actor->state, WORLD_SUMMED_GROUPS);
    uint32_t what = plain_draw(&actor->state, WORLD_NAMES + 3);
    bool labeled = plain_draw(&actor->state, 3) == 0;
    if (what == WORLD_OPEN)
        return move_gauge(actor, world_series(group, WORLD_OPEN, labeled));
    if (what < WORLD_NAMES)
        return add_one(actor, world_series(group, (enum world_name)what, labeled));
    return what == WORLD_NAMES ? emit_event(actor, group, labeled)
           : what % 2          ? set_level(actor)
                               : add_one(actor, world_series(group, WORLD_HITS, labeled));
}

int instruments_add(struct actor *actor)
{
    int result = 0;
    for (uint32_t i = 1 + plain_draw(&actor->state, BURST); result == 0 && i > 0; i--)
        result = add_at_random(actor);
    return result;
}

void instruments_add_to_all(struct actor *actor)
{
    for (uint32_t i = 0; i < WORLD_LEVELS; i++) {
        if (world_is_gauge(i))
            move_gauge(actor, i);
        else
            add_one(actor, i);
    }
    set_level(actor);
}

void instruments_move_inherited(struct actor *actor, uint32_t parent, double level)
{
    struct world_end *end = &world->ends[world_self];
    plan_value(actor, WORLD_LEVELS + parent, (int)level + 1);
    end->parent = parent;
    end->inherited = level + 1;
    end->has_inherited = conclude(actor, 1, weir_metric_change(level_of(parent), 1)) == 0;
}

int instruments_add_invalid(struct actor *actor)
{
    uint32_t group = WORLD_PLAIN_GROUPS + plain_draw(&actor->state, WORLD_SUMMED_GROUPS);
    weir_stream *stream = weir_get_stream(world_groups[group]);
    switch (plain_draw(&actor->state, 3)) {
    case 0: return weir_count(stream, world_names[WORLD_HITS], -1);
    case 1: return weir_metric_add(metric_of(world_series(group, WORLD_SIZE, false)), NAN);
    default: return weir_metric_change(metric_of(world_series(group, WORLD_OPEN, true)), INFINITY);
    }
}

void instruments_expect_level(const struct actor *actor, const char *why)
{
    const struct world_actor *own = &world->actors[actor->id];
    for (int i = WORLD_PLAIN_HANDLERS; i < WORLD_HANDLERS; i++) {
        const struct world_tally *tally = &world->tallies[world_self][i][WORLD_LEVELS + actor->id];
        if (!(actor->level_handlers >> i & 1))
            continue;
        double level = atomic_load(&tally->level);
        if (!atomic_load(&tally->has_level) || level != own->level)
            world_fail("%s, but the level of actor %u is %g, and %s has %g", why, actor->id, own->level,
                       world_handlers[i], level);
    }
}
