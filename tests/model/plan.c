#include "plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../support/plain.h"
#include "scripted.h"

enum {
    ALL = (1 << WORLD_PLAIN_HANDLERS) - 1,
    ALL_SUMMED = ((1 << WORLD_HANDLERS) - 1) & ~ALL, /* of groups of instruments */
};

struct plan_terms plan_terms;
struct plan_config plan_configs[PLAN_CONFIGS + 1];

static void append(struct plan_config *config, const char *format, ...)
{
    size_t length = strlen(config->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(config->text + length, sizeof config->text - length, format, arguments);
    va_end(arguments);
}

static const char *pick(uint64_t *state, const char *const *words, uint32_t count)
{
    return words[plain_draw(state, count)];
}

uint8_t plan_withheld(const struct world_sample *sample)
{
    return plan_terms.picky && sample->integer ? 1 << (WORLD_PLAIN_HANDLERS - 1) : 0;
}

uint8_t plan_summing(uint32_t config, uint32_t group)
{
    return plan_configs[config].routes[group] & plan_configs[config].sums;
}

/* ---- Handlers -------------------------------------------------------------------------------- */

/* With a journal the queue of a handler that has failed for good stays full: calls must not wait for it for
 * long. */
static void append_overflow(struct plan_config *config, uint64_t *state)
{
    static const char *const policies[] = {"block", "drop_newest", "drop_oldest"};
    static const char *const timeouts[] = {"0s", "5ms", "1h"};
    if (plan_terms.lossless)
        append(config, ",\"overflow\":\"block\",\"block_timeout\":\"1h\"");
    else
        append(config, ",\"overflow\":\"%s\",\"block_timeout\":\"%s\"", pick(state, policies, 3),
               pick(state, timeouts, plan_terms.journal && scripted_behaviour.fails ? 2 : 3));
}

static void append_queue(struct plan_config *config, int handler, const char *type, uint64_t *state)
{
    static const char *const queues[] = {"1KiB", "3KiB", "16KiB", "256KiB"};
    static const char *const lingers[] = {"0s", "0s", "1ms", "4ms"};
    append(config, "\"%s\":{\"type\":\"%s\",\"queue\":\"%s\",\"batch\":%u,\"linger\":\"%s\"",
           world_handlers[handler], type, pick(state, queues, 4),
           1 + plain_draw(state, plain_draw(state, 2) ? 8 : 400), pick(state, lingers, 4));
    append(config, ",\"retry_min\":\"1ms\",\"retry_max\":\"%ums\"", 1 + plain_draw(state, 4));
    if (plan_terms.spool)
        append(config, ",\"spool\":\"%s/spool\",\"spool_limit\":\"64MiB\"", plan_terms.folder);
}

static void append_handler(struct plan_config *config, int handler, uint64_t *state)
{
    bool picky = plan_terms.picky && handler == WORLD_PLAIN_HANDLERS - 1;
    append(config, handler ? "," : "");
    append_queue(config, handler, picky ? "picky" : "scripted", state);
    append_overflow(config, state);
    if (plan_terms.sync && plain_draw(state, 6) == 0) {
        append(config, ",\"delivery\":\"sync\"");
        config->sync |= (uint8_t)(1 << handler);
    }
    append(config, "}");
}

/* Without percentiles histograms are summed as counters are. */
static void append_aggregate(struct plan_config *config, uint64_t *state)
{
    static const char *const intervals[] = {"10ms", "10ms", "15ms", "50ms", "1h"};
    static const char *const percentiles[] = {"[]", "[]", "[50]", "[50, 99]"};
    append(config, ",\"aggregate\":\"%s\",\"percentiles\":%s", pick(state, intervals, 5),
           pick(state, percentiles, 4));
    if (plain_draw(state, 4) == 0)
        append(config, ",\"window\":\"100ms\"");
}

/* A handler of instruments may be missing, and may take values one by one. */
static void append_summing_handler(struct plan_config *config, int handler, uint64_t *state)
{
    uint8_t bit = (uint8_t)(1 << handler);
    if (config->lacks & bit)
        return;
    append(config, ",");
    append_queue(config, handler, handler == WORLD_PARTED ? "parted" : "summing", state);
    if (config->sums & bit)
        append_aggregate(config, state);
    else
        append_overflow(config, state);
    append(config, "}");
}

/* ---- Routes ---------------------------------------------------------------------------------- */

static void append_route(struct plan_config *config, uint32_t handlers, bool inherits)
{
    const char *comma = "";
    append(config, "[");
    if (inherits) {
        append(config, "\"inherit\"");
        comma = ",";
    }
    for (int i = 0; i < WORLD_HANDLERS; i++)
        if (handlers >> i & 1) {
            append(config, "%s\"%s\"", comma, world_handlers[i]);
            comma = ",";
        }
    append(config, "]");
}

/* A group has its own route, extends its parent's, or inherits it. Groups are listed after their parents. */
static void append_group(struct plan_config *config, int group, uint8_t inherited, uint32_t own, uint32_t kind)
{
    config->routes[group] = kind == 0 ? inherited : (uint8_t)(own | (kind == 1 ? inherited : 0));
    if (kind == 0)
        return;
    append(config, ",\"%s\":", world_groups[group]);
    append_route(config, own, kind == 1);
}

/* "n" inherits only from "*". */
static void append_routes(struct plan_config *config, uint64_t *state)
{
    static const int parents[WORLD_PLAIN_GROUPS] = {-1, 0, 1, -1};
    uint8_t default_route = (uint8_t)plain_draw(state, 1 << WORLD_PLAIN_HANDLERS);
    append(config, "\"*\":");
    append_route(config, default_route, false);
    for (int i = 0; i < WORLD_PLAIN_GROUPS; i++) {
        uint8_t inherited = parents[i] < 0 ? default_route : config->routes[parents[i]];
        uint32_t own = plain_draw(state, 1 << WORLD_PLAIN_HANDLERS), kind = plain_draw(state, 3);
        append_group(config, i, inherited, own, kind);
    }
}

/* The first group of instruments is summed by a handler of each configuration, so that its totals go on. */
static void append_summed_routes(struct plan_config *config, uint64_t *state)
{
    static const int parents[WORLD_SUMMED_GROUPS] = {-1, WORLD_PLAIN_GROUPS, -1};
    uint32_t there = ALL_SUMMED & ~config->lacks;
    for (int i = 0; i < WORLD_SUMMED_GROUPS; i++) {
        uint32_t own = plain_draw(state, 1 << WORLD_HANDLERS) & there;
        uint32_t kind = parents[i] < 0 ? 2 : plain_draw(state, 3);
        if (plain_draw(state, 2))
            own &= config->sums;
        if (i == 0 && !(own & config->sums))
            own |= config->sums;
        append_group(config, WORLD_PLAIN_GROUPS + i, parents[i] < 0 ? 0 : config->routes[parents[i]], own,
                     kind);
    }
}

/* ---- Configurations -------------------------------------------------------------------------- */

/* At least one handler sums. */
static void draw_handlers(struct plan_config *config, bool all, uint64_t *state)
{
    uint8_t one =
        (uint8_t)(1 << (WORLD_PLAIN_HANDLERS + plain_draw(state, WORLD_HANDLERS - WORLD_PLAIN_HANDLERS)));
    *config = (struct plan_config){0};
    for (int i = WORLD_PLAIN_HANDLERS; i < WORLD_HANDLERS; i++) {
        uint32_t kind = plain_draw(state, 6);
        config->lacks |= (uint8_t)(kind == 0 && !all ? 1 << i : 0);
        config->sums |= (uint8_t)(kind > 1 ? 1 << i : 0);
    }
    config->lacks &= (uint8_t)~one;
    config->sums |= one;
}

static void begin(struct plan_config *config, bool all, uint64_t *state)
{
    const char *timeouts = plan_terms.lossless || plain_draw(state, 2) ? "60s" : "0s";
    draw_handlers(config, all, state);
    append(config, "{\"settings\":{\"shutdown_timeout\":\"%s\"", timeouts);
    if (plan_terms.journal)
        append(config, ",\"journal\":\"%s/journal\"", plan_terms.folder);
    append(config, "},\"handlers\":{");
    for (int i = 0; i < WORLD_PLAIN_HANDLERS; i++)
        append_handler(config, i, state);
    for (int i = WORLD_PLAIN_HANDLERS; i < WORLD_HANDLERS; i++)
        append_summing_handler(config, i, state);
    append(config, "},\"groups\":{");
}

static void draw_last(struct plan_config *config, uint64_t *state)
{
    const struct plan_terms terms = plan_terms;
    plan_terms.lossless = true;
    plan_terms.sync = false;
    begin(config, true, state);
    append(config, "\"*\":");
    append_route(config, ALL, false);
    for (int i = 0; i < WORLD_GROUPS; i++)
        config->routes[i] = i < WORLD_PLAIN_GROUPS ? ALL : ALL_SUMMED;
    append(config, ",\"s\":");
    append_route(config, ALL_SUMMED, false);
    append(config, ",\"v\":");
    append_route(config, ALL_SUMMED, false);
    append(config, "}}");
    plan_terms = terms;
}

void plan_draw(uint64_t *state)
{
    for (int i = 0; i < PLAN_CONFIGS; i++) {
        begin(&plan_configs[i], false, state);
        append_routes(&plan_configs[i], state);
        append_summed_routes(&plan_configs[i], state);
        append(&plan_configs[i], "}}");
    }
    draw_last(&plan_configs[PLAN_LAST], state);
}
