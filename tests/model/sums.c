#include "sums.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actor.h"
#include "checker.h"
#include "plan.h"

uint32_t sums_first_config;

/* What a handler got of a series is between these. */
struct bounds {
    struct world_sum least, most;
    bool is_rounded; /* values may have come as several of their mean, whose sum is rounded */
};

struct table {
    struct bounds bounds[WORLD_HANDLERS][WORLD_SERIES];
};

static const double rounding = 1e-6;

/* ---- What was added -------------------------------------------------------------------------- */

static const struct world_value *find_values(uint32_t actor, uint32_t *count)
{
    *count = atomic_load(&world->actors[actor].value_count);
    return world->actors[actor].values;
}

/* The handlers that some of the configurations route it to, and those that all do. */
static void find_handlers(const struct world_value *value, bool killed, uint8_t *possible, uint8_t *certain)
{
    uint32_t group = world_group_of(value->series);
    *possible = 0;
    *certain = UINT8_MAX;
    for (uint32_t k = value->lo; k <= value->hi; k++) {
        *possible |= plan_configs[k].routes[group];
        *certain &= plan_configs[k].routes[group];
    }
    if (killed) { /* what it leaves in its rings takes the last route */
        *possible |= plan_configs[PLAN_LAST].routes[group];
        *certain &= plan_configs[PLAN_LAST].routes[group];
    }
}

void sums_add_values(struct sums *sums)
{
    uint32_t count;
    for (uint32_t i = 0; i < WORLD_ACTORS; i++) {
        const struct world_value *values = find_values(i, &count);
        for (uint32_t k = 0; k < count; k++) {
            uint8_t possible, certain;
            bool never_unrouted = true;
            if (values[k].process != world_self || values[k].fate != WORLD_TAKEN)
                continue;
            find_handlers(&values[k], false, &possible, &certain);
            for (uint32_t c = values[k].lo; c <= values[k].hi; c++)
                never_unrouted &= plan_configs[c].routes[world_group_of(values[k].series)] != 0;
            for (int h = 0; h < WORLD_HANDLERS; h++) {
                sums->least_offered[h] += certain >> h & 1;
                sums->most_offered[h] += possible >> h & 1;
            }
            sums->added++;
            sums->least_unrouted += !possible;
            sums->most_unrouted += !never_unrouted;
        }
    }
}

/* Values that were added while the configuration changed may come as so many of their mean, of a histogram in
 * any bucket, to a handler that did not sum them all the time. */
static bool is_rounded(const struct world_value *value, int handler)
{
    uint32_t group = world_group_of(value->series);
    bool always_sums = true;
    for (uint32_t k = value->lo; k <= value->hi; k++)
        always_sums &= !(plan_configs[k].routes[group] >> handler & 1) || plan_summing(k, group) >> handler & 1;
    return value->lo != value->hi && !always_sums;
}

static void add_possible(struct bounds *bounds, const struct world_value *value, int handler)
{
    world_sum_add(&bounds->most, value->series, value->value);
    if (!is_rounded(value, handler))
        return;
    bounds->is_rounded = true;
    for (uint32_t i = 0; world_is_histogram(value->series) && i < WORLD_BUCKETS; i++)
        if (i != world_bucket(value->series, value->value))
            bounds->most.buckets[i]++;
}

static void add_certain(struct bounds *bounds, const struct world_value *value, int handler)
{
    world_sum_add(&bounds->least, value->series, value->value);
    if (bounds->is_rounded && world_is_histogram(value->series) && is_rounded(value, handler))
        bounds->least.buckets[world_bucket(value->series, value->value)]--;
}

static void add_value(struct table *table, const struct world_value *value, bool killed)
{
    uint8_t possible, certain;
    find_handlers(value, killed, &possible, &certain);
    for (int i = WORLD_PLAIN_HANDLERS; i < WORLD_HANDLERS; i++) {
        struct bounds *bounds = &table->bounds[i][value->series];
        if (possible >> i & 1)
            add_possible(bounds, value, i);
        if (certain >> i & 1 && value->fate == WORLD_TAKEN)
            add_certain(bounds, value, i);
    }
}

/* What one process has added. */
static void add_process(struct table *table, uint32_t process, bool killed)
{
    uint32_t count;
    for (uint32_t i = 0; i < WORLD_ACTORS; i++) {
        const struct world_value *values = find_values(i, &count);
        for (uint32_t k = 0; k < count; k++)
            if (values[k].process == process && values[k].fate != WORLD_REFUSED)
                add_value(table, &values[k], killed);
    }
}

/* ---- Comparisons ----------------------------------------------------------------------------- */

static void format_series(char *text, size_t size, uint32_t series)
{
    const char *group = world_groups[world_group_of(series)];
    if (series < WORLD_LEVELS)
        snprintf(text, size, "%s of group %s%s", world_names[world_name_of(series)], group,
                 series % WORLD_LABELS ? ", with a label" : "");
    else
        snprintf(text, size, "level%u of group %s", series - WORLD_LEVELS, group);
}

static _Noreturn void fail(const char *what, int handler, uint32_t series, double is, double least, double most)
{
    char text[80];
    format_series(text, sizeof text, series);
    world_fail("%s: %s of %s is %.17g, not %.17g to %.17g", world_handlers[handler], what, text, is, least,
               most);
}

/* has_least, has_most: whether these are known. */
static void compare(int handler, uint32_t series, const struct world_sum *is, const struct bounds *bounds,
                    bool has_least, bool has_most)
{
    const struct world_sum *least = &bounds->least, *most = &bounds->most;
    double slack = bounds->is_rounded ? rounding : 0;
    bool knows_sum = handler != WORLD_PARTED && !world_is_gauge(series);
    if ((has_least && is->count < least->count) || (has_most && is->count > most->count))
        fail("the number of values", handler, series, (double)is->count, (double)least->count,
             (double)most->count);
    if (!knows_sum)
        return;
    if ((has_least && is->sum < least->sum - slack) || (has_most && is->sum > most->sum + slack))
        fail("the sum", handler, series, is->sum, least->sum, most->sum);
    for (uint32_t i = 0; i < WORLD_BUCKETS; i++)
        if ((has_least && is->buckets[i] < least->buckets[i]) ||
            (has_most && is->buckets[i] > most->buckets[i]))
            fail("a bucket", handler, series, (double)is->buckets[i], (double)least->buckets[i],
                 (double)most->buckets[i]);
}

static struct table *make_table(void)
{
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        world_fail("out of memory for the model");
    return table;
}

/* ---- Totals and levels ----------------------------------------------------------------------- */

/* What this process has added to a series, wherever it went. */
static struct bounds add_up(uint32_t series, int handler)
{
    struct bounds bounds = {0};
    uint32_t count;
    for (uint32_t i = 0; i < WORLD_ACTORS; i++) {
        const struct world_value *values = find_values(i, &count);
        for (uint32_t k = 0; k < count; k++) {
            if (values[k].process != world_self || values[k].fate != WORLD_TAKEN || values[k].series != series)
                continue;
            add_possible(&bounds, &values[k], handler);
            add_certain(&bounds, &values[k], handler);
        }
    }
    return bounds;
}

/* Parts have the buckets as each includes those below. */
static struct world_sum total_of(int handler, uint32_t series)
{
    struct world_sum total = world->tallies[world_self][handler][series].total;
    for (uint32_t i = WORLD_BUCKETS; handler == WORLD_PARTED && --i > 0;)
        total.buckets[i] -= total.buckets[i] ? total.buckets[i - 1] : 0;
    return total;
}

static void check_total(int handler, uint32_t series, bool adopted)
{
    struct world_sum total = total_of(handler, series);
    struct bounds bounds = add_up(series, handler);
    double slack = bounds.is_rounded ? rounding : 0;
    bool counts = handler != WORLD_PARTED || world_name_of(series) != WORLD_HITS;
    if (counts && (total.count < bounds.least.count || (!adopted && total.count > bounds.most.count)))
        fail("the total count", handler, series, (double)total.count, (double)bounds.least.count,
             (double)bounds.most.count);
    if (total.sum < bounds.least.sum - slack || (!adopted && total.sum > bounds.most.sum + slack))
        fail("the total sum", handler, series, total.sum, bounds.least.sum, bounds.most.sum);
    for (uint32_t i = 0; i < WORLD_BUCKETS; i++)
        if (total.buckets[i] < bounds.least.buckets[i] ||
            (!adopted && total.buckets[i] > bounds.most.buckets[i]))
            fail("a total bucket", handler, series, (double)total.buckets[i], (double)bounds.least.buckets[i],
                 (double)bounds.most.buckets[i]);
}

static void check_level(int handler, uint32_t series, double expected)
{
    const struct world_tally *tally = &world->tallies[world_self][handler][series];
    double level = atomic_load(&tally->level);
    if (!atomic_load(&tally->has_level) || level != expected)
        fail("the level", handler, series, level, expected, expected);
}

/* Where it is now, if the process began without a level. */
static void check_moved_gauge(int handler, uint32_t series)
{
    uint32_t count;
    double level = 0;
    bool is_set = false;
    for (uint32_t i = 0; i < WORLD_ACTORS; i++) {
        const struct world_value *values = find_values(i, &count);
        for (uint32_t k = 0; k < count; k++)
            if (values[k].process == world_self && values[k].series == series &&
                values[k].fate == WORLD_TAKEN) {
                level += values[k].value;
                is_set = true;
            }
    }
    bool begins_anew = world_self == 0 || world_self == WORLD_LAST;
    if (is_set && begins_anew)
        check_level(handler, series, level);
}

/* A child may also get what its parent has left of the gauge that it inherited. */
static void check_set_gauge(int handler, uint32_t actor, bool adopted)
{
    const struct world_end *end = &world->ends[world_self];
    const struct world_actor *own = &world->actors[actor];
    uint32_t count;
    const struct world_value *values = find_values(actor, &count);
    bool is_inherited = end->has_inherited && end->parent == actor;
    if (is_inherited && !adopted)
        check_level(handler, WORLD_LEVELS + actor, end->inherited);
    else if (count && own->has_level && values[0].process == world_self)
        check_level(handler, WORLD_LEVELS + actor, own->level);
}

/* Whether the totals of a group have gone on in one handler after the other. */
static bool was_always_summed(uint32_t group)
{
    bool is_summed = true;
    for (uint32_t k = sums_first_config; k <= actor_applying(); k++)
        is_summed = is_summed && plan_summing(k, group);
    return is_summed;
}

static void check_last_summaries(int handler, bool adopted)
{
    uint32_t applied = actor_applied(), applying = actor_applying();
    for (uint32_t i = 0; i < WORLD_SERIES; i++) {
        uint32_t group = world_group_of(i);
        if (!(plan_summing(applied, group) & plan_summing(applying, group) & 1u << handler))
            continue;
        if (i >= WORLD_LEVELS)
            check_set_gauge(handler, i - WORLD_LEVELS, adopted);
        else if (world_is_gauge(i))
            check_moved_gauge(handler, i);
        else if (world_name_of(i) != WORLD_RATE && was_always_summed(group))
            check_total(handler, i, adopted);
    }
}

/* ---- A process ------------------------------------------------------------------------------- */

/* Whether nothing is repeated while its outcome is known: what a handler is working on when a configuration
 * removes it, without waiting for it, stays on disk, and comes again when the handler returns. */
static bool repeats_nothing(void)
{
    return plan_terms.lossless || !(plan_terms.spool || plan_terms.journal);
}

static bool is_adopted(void)
{
    bool adopted = false;
    for (int i = 0; i < WORLD_HANDLERS; i++)
        adopted |= world->ends[world_self].handlers[i].recovered != 0;
    return adopted;
}

void sums_check_process(void)
{
    struct table *table = make_table();
    bool adopted = is_adopted(), in_a_hurry = atomic_load(&world->ends[world_self].in_a_hurry);
    add_process(table, world_self, false);
    for (int i = WORLD_PLAIN_HANDLERS; i < WORLD_HANDLERS; i++) {
        bool is_whole = checker_is_whole(&world->ends[world_self].handlers[i]);
        for (uint32_t k = 0; k < WORLD_SERIES; k++)
            compare(i, k, &world->tallies[world_self][i][k].settled, &table->bounds[i][k], is_whole,
                    !adopted && repeats_nothing());
        /* otherwise a summary without values may be missing, which no ledger shows */
        if (is_whole && plan_terms.lossless && !in_a_hurry)
            check_last_summaries(i, adopted);
    }
    free(table);
}

/* ---- A life ---------------------------------------------------------------------------------- */

/* Whether values of a handler were lost. A process that was killed has no ledger. */
static bool was_lost(int handler)
{
    bool lost = false;
    for (int i = 0; i < WORLD_PROCESSES; i++) {
        weir_handler_stats stats = world->ends[i].handlers[handler];
        stats.spooled = 0;
        lost |= !checker_is_whole(&stats);
    }
    return lost;
}

/* What all processes got. sure: without what may have been repeated because an outcome was not known. */
static struct world_sum add_settled(int handler, uint32_t series, bool sure)
{
    struct world_sum sum = {0};
    for (int i = 0; i < WORLD_PROCESSES; i++) {
        const struct world_tally *tally = &world->tallies[i][handler][series];
        world_sum_add_all(&sum, &tally->settled);
        if (!sure || !atomic_load(&world->ends[i].in_a_hurry))
            continue;
        sum.count -= tally->recent.count;
        sum.sum -= tally->recent.sum;
        for (int k = 0; k < WORLD_BUCKETS; k++)
            sum.buckets[k] -= tally->recent.buckets[k];
    }
    return sum;
}

void sums_check_life(void)
{
    struct table *table = make_table();
    for (uint32_t i = 0; i < WORLD_PROCESSES; i++)
        add_process(table, i, !atomic_load(&world->ends[i].done));
    for (int i = WORLD_PLAIN_HANDLERS; i < WORLD_HANDLERS; i++)
        for (uint32_t k = 0; k < WORLD_SERIES; k++) {
            const struct world_sum all = add_settled(i, k, false), sure = add_settled(i, k, true);
            compare(i, k, &all, &table->bounds[i][k], !was_lost(i), false);
            compare(i, k, &sure, &table->bounds[i][k], false, repeats_nothing());
        }
    free(table);
}
