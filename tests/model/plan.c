#include "plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../support/plain.h"

enum { ALL = (1 << WORLD_HANDLERS) - 1 };

struct plan_terms plan_terms;
struct plan_config plan_configs[PLAN_CONFIGS + 1];

static void put(struct plan_config *config, const char *format, ...)
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
    return plan_terms.picky && sample->integer ? 1 << (WORLD_HANDLERS - 1) : 0;
}

/* ---- Handlers -------------------------------------------------------------------------------- */

static void put_overflow(struct plan_config *config, uint64_t *state)
{
    static const char *const policies[] = {"block", "drop_newest", "drop_oldest"};
    static const char *const patience[] = {"0s", "5ms", "1h"};
    if (plan_terms.lossless)
        put(config, ",\"overflow\":\"block\",\"block_timeout\":\"1h\"");
    else
        put(config, ",\"overflow\":\"%s\",\"block_timeout\":\"%s\"", pick(state, policies, 3),
            pick(state, patience, 3));
}

static void put_handler(struct plan_config *config, int handler, uint64_t *state)
{
    static const char *const queues[] = {"1KiB", "3KiB", "16KiB", "256KiB"};
    static const char *const lingers[] = {"0s", "0s", "1ms", "4ms"};
    bool picky = plan_terms.picky && handler == WORLD_HANDLERS - 1;
    put(config, "%s\"%s\":{\"type\":\"%s\",\"queue\":\"%s\",\"batch\":%u,\"linger\":\"%s\"", handler ? "," : "",
        world_handlers[handler], picky ? "picky" : "scripted", pick(state, queues, 4),
        1 + plain_draw(state, plain_draw(state, 2) ? 8 : 400), pick(state, lingers, 4));
    put(config, ",\"retry_min\":\"1ms\",\"retry_max\":\"%ums\"", 1 + plain_draw(state, 4));
    put_overflow(config, state);
    if (plan_terms.spool)
        put(config, ",\"spool\":\"%s/spool\",\"spool_limit\":\"64MiB\"", plan_terms.folder);
    if (plan_terms.sync && plain_draw(state, 6) == 0) {
        put(config, ",\"delivery\":\"sync\"");
        config->sync |= (uint8_t)(1 << handler);
    }
    put(config, "}");
}

/* ---- Routes ---------------------------------------------------------------------------------- */

static void put_route(struct plan_config *config, uint32_t handlers, bool inherits)
{
    const char *comma = "";
    put(config, "[");
    if (inherits) {
        put(config, "\"inherit\"");
        comma = ",";
    }
    for (int i = 0; i < WORLD_HANDLERS; i++)
        if (handlers >> i & 1) {
            put(config, "%s\"%s\"", comma, world_handlers[i]);
            comma = ",";
        }
    put(config, "]");
}

/* A group has a route of its own, adds to its parent's, or has the parent's. Groups stand behind their parents;
 * "n" has none but "*". */
static void put_routes(struct plan_config *config, uint64_t *state)
{
    static const int parents[WORLD_GROUPS] = {-1, 0, 1, -1};
    uint8_t standard = (uint8_t)plain_draw(state, 1 << WORLD_HANDLERS);
    put(config, "\"*\":");
    put_route(config, standard, false);
    for (int i = 0; i < WORLD_GROUPS; i++) {
        uint8_t inherited = parents[i] < 0 ? standard : config->routes[parents[i]];
        uint32_t own = plain_draw(state, 1 << WORLD_HANDLERS), how = plain_draw(state, 3);
        config->routes[i] = how == 0 ? inherited : (uint8_t)(own | (how == 1 ? inherited : 0));
        if (how == 0)
            continue;
        put(config, ",\"%s\":", world_groups[i]);
        put_route(config, own, how == 1);
    }
}

/* ---- Configurations -------------------------------------------------------------------------- */

static void begin(struct plan_config *config, uint64_t *state)
{
    const char *patience = plan_terms.lossless || plain_draw(state, 2) ? "60s" : "0s";
    *config = (struct plan_config){0};
    put(config, "{\"settings\":{\"shutdown_timeout\":\"%s\"", patience);
    if (plan_terms.journal)
        put(config, ",\"journal\":\"%s/journal\"", plan_terms.folder);
    put(config, "},\"handlers\":{");
    for (int i = 0; i < WORLD_HANDLERS; i++)
        put_handler(config, i, state);
    put(config, "},\"groups\":{");
}

static void draw_last(struct plan_config *config, uint64_t *state)
{
    const struct plan_terms terms = plan_terms;
    plan_terms.lossless = true;
    plan_terms.sync = false;
    begin(config, state);
    put(config, "\"*\":");
    put_route(config, ALL, false);
    put(config, "}}");
    memset(config->routes, ALL, sizeof config->routes);
    plan_terms = terms;
}

void plan_draw(uint64_t *state)
{
    for (int i = 0; i < PLAN_CONFIGS; i++) {
        begin(&plan_configs[i], state);
        put_routes(&plan_configs[i], state);
        put(&plan_configs[i], "}}");
    }
    draw_last(&plan_configs[PLAN_LAST], state);
}
