#include "plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../support/plain.h"

enum { ALL = (1 << WORLD_HANDLERS) - 1 };

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
    return plan_terms.picky && sample->integer ? 1 << (WORLD_HANDLERS - 1) : 0;
}

/* ---- Handlers -------------------------------------------------------------------------------- */

static void append_overflow(struct plan_config *config, uint64_t *state)
{
    static const char *const policies[] = {"block", "drop_newest", "drop_oldest"};
    static const char *const timeouts[] = {"0s", "5ms", "1h"};
    if (plan_terms.lossless)
        append(config, ",\"overflow\":\"block\",\"block_timeout\":\"1h\"");
    else
        append(config, ",\"overflow\":\"%s\",\"block_timeout\":\"%s\"", pick(state, policies, 3),
               pick(state, timeouts, 3));
}

static void append_handler(struct plan_config *config, int handler, uint64_t *state)
{
    static const char *const queues[] = {"1KiB", "3KiB", "16KiB", "256KiB"};
    static const char *const lingers[] = {"0s", "0s", "1ms", "4ms"};
    bool picky = plan_terms.picky && handler == WORLD_HANDLERS - 1;
    append(config, "%s\"%s\":{\"type\":\"%s\",\"queue\":\"%s\",\"batch\":%u,\"linger\":\"%s\"",
           handler ? "," : "", world_handlers[handler], picky ? "picky" : "scripted", pick(state, queues, 4),
           1 + plain_draw(state, plain_draw(state, 2) ? 8 : 400), pick(state, lingers, 4));
    append(config, ",\"retry_min\":\"1ms\",\"retry_max\":\"%ums\"", 1 + plain_draw(state, 4));
    append_overflow(config, state);
    if (plan_terms.spool)
        append(config, ",\"spool\":\"%s/spool\",\"spool_limit\":\"64MiB\"", plan_terms.folder);
    if (plan_terms.sync && plain_draw(state, 6) == 0) {
        append(config, ",\"delivery\":\"sync\"");
        config->sync |= (uint8_t)(1 << handler);
    }
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

/* A group has its own route, extends its parent's, or inherits it. Groups are listed after their parents;
 * "n" inherits only from "*". */
static void append_routes(struct plan_config *config, uint64_t *state)
{
    static const int parents[WORLD_GROUPS] = {-1, 0, 1, -1};
    uint8_t default_route = (uint8_t)plain_draw(state, 1 << WORLD_HANDLERS);
    append(config, "\"*\":");
    append_route(config, default_route, false);
    for (int i = 0; i < WORLD_GROUPS; i++) {
        uint8_t inherited = parents[i] < 0 ? default_route : config->routes[parents[i]];
        uint32_t own = plain_draw(state, 1 << WORLD_HANDLERS), kind = plain_draw(state, 3);
        config->routes[i] = kind == 0 ? inherited : (uint8_t)(own | (kind == 1 ? inherited : 0));
        if (kind == 0)
            continue;
        append(config, ",\"%s\":", world_groups[i]);
        append_route(config, own, kind == 1);
    }
}

/* ---- Configurations -------------------------------------------------------------------------- */

static void begin(struct plan_config *config, uint64_t *state)
{
    const char *timeouts = plan_terms.lossless || plain_draw(state, 2) ? "60s" : "0s";
    *config = (struct plan_config){0};
    append(config, "{\"settings\":{\"shutdown_timeout\":\"%s\"", timeouts);
    if (plan_terms.journal)
        append(config, ",\"journal\":\"%s/journal\"", plan_terms.folder);
    append(config, "},\"handlers\":{");
    for (int i = 0; i < WORLD_HANDLERS; i++)
        append_handler(config, i, state);
    append(config, "},\"groups\":{");
}

static void draw_last(struct plan_config *config, uint64_t *state)
{
    const struct plan_terms terms = plan_terms;
    plan_terms.lossless = true;
    plan_terms.sync = false;
    begin(config, state);
    append(config, "\"*\":");
    append_route(config, ALL, false);
    append(config, "}}");
    memset(config->routes, ALL, sizeof config->routes);
    plan_terms = terms;
}

void plan_draw(uint64_t *state)
{
    for (int i = 0; i < PLAN_CONFIGS; i++) {
        begin(&plan_configs[i], state);
        append_routes(&plan_configs[i], state);
        append(&plan_configs[i], "}}");
    }
    draw_last(&plan_configs[PLAN_LAST], state);
}
