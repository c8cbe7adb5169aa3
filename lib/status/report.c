#include "status/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text/buffer.h"
#include "os/clock.h"
#include "text/common.h"
#include "lane/lane_stats.h"
#include "lane/losses.h"
#include "status/ledger.h"
#include "text/suggest.h"
#include "text/utf8.h"

/* The largest number of lines of each kind; the rest is counted. */
enum { HANDLERS_MOST = 20, GROUPS_MOST = 5, ROUTES_MOST = 5, ENTRIES_MOST = 5 };

static const char *const refusal_names[WEIR_REFUSED_MAX] = {
    [WEIR_REFUSED_NAME] = "name",         [WEIR_REFUSED_LIMIT] = "limit",
    [WEIR_REFUSED_MEMORY] = "memory",     [WEIR_REFUSED_CLOSED] = "closed",
    [WEIR_REFUSED_BUSY] = "busy",         [WEIR_REFUSED_TOO_LARGE] = "too_large",
    [WEIR_REFUSED_ARGUMENT] = "argument",
};

const char *wr_report_refusal_name(int why)
{
    return why >= 0 && why < WEIR_REFUSED_MAX ? refusal_names[why] : NULL;
}

static void write_line(struct wr_engine *engine, int level, struct wr_buffer *line)
{
    const char *text = wr_buffer_text(line);
    if (text)
        wr_log_write(engine->log, level, "ledger: %s", text);
    wr_buffer_fini(line);
}

static const char *quote(char *out, const char *name)
{
    return wr_utf8_quote(out, WR_UTF8_QUOTE_ROOM, name, strlen(name));
}

/* "5 dropped", "5 dropped (3 full, 2 rejected)" */
static void put_counts(struct wr_buffer *line, const char *what, const uint64_t *counts, int kinds,
                       const char *(*name_of)(int why))
{
    uint64_t sum = 0;
    for (int i = 0; i < kinds; i++)
        sum += counts[i];
    wr_buffer_put_format(line, "%" PRIu64 " %s", sum, what);
    const char *before = " (";
    for (int i = 0; i < kinds; i++) {
        if (!counts[i])
            continue;
        const char *name = name_of(i);
        wr_buffer_put_format(line, "%s%" PRIu64 " %s", before, counts[i], name ? name : "other");
        before = ", ";
    }
    wr_buffer_put_text(line, sum ? ")" : "");
}

static void report_process(struct wr_engine *engine, const struct wr_config *config)
{
    weir_stats stats;
    struct wr_buffer line = {0};
    wr_ledger_read(engine, &stats);
    wr_buffer_put_format(&line, "process %ld: %" PRIu64 " values added, %" PRIu64 " of them unrouted, ",
                         (long)getpid(), stats.added, stats.unrouted);
    put_counts(&line, "refused", stats.refused, WEIR_REFUSED_MAX, wr_report_refusal_name);
    if (!config->route_count)
        wr_buffer_put_text(&line, stats.added ? "; no route is configured: set WEIR_CONFIG, or call "
                                                "weir_configure_file in the program"
                                              : "; no value was added");
    write_line(engine, WEIR_LOG_INFO, &line);
}

/* ---- Handlers -------------------------------------------------------------------------------- */

static void report_handler(struct wr_engine *engine, struct wr_lane *lane)
{
    char shown[WR_UTF8_QUOTE_ROOM];
    struct wr_lane_status status;
    struct wr_buffer line = {0};
    wr_lane_stats_get_status(&status, lane, wr_clock_monotonic_ns());
    const weir_handler_stats *stats = &status.stats;
    wr_buffer_put_format(&line, "handler %s: %" PRIu64 " offered, ", quote(shown, status.name), stats->offered);
    if (stats->recovered)
        wr_buffer_put_format(&line, "%" PRIu64 " recovered, ", stats->recovered);
    wr_buffer_put_format(&line, "%" PRIu64 " delivered, ", stats->delivered);
    put_counts(&line, "dropped", stats->dropped, WEIR_DROPPED_MAX, wr_losses_name);
    wr_buffer_put_format(&line, ", %" PRIu64 " queued, %" PRIu64 " spooled, ", stats->queued, stats->spooled);
    if (stats->summing)
        wr_buffer_put_format(&line, "%" PRIu64 " summing, ", stats->summing);
    wr_buffer_put_format(&line, "%" PRIu64 " retries", stats->retries);
    if (status.stats.last_error_ms >= 0)
        wr_buffer_put_format(&line, "; last error: %s", status.stats.last_error);
    write_line(engine, WEIR_LOG_INFO, &line);
}

static void report_handlers(struct wr_engine *engine)
{
    size_t count = 0;
    for (struct wr_lane *lane = wr_engine_lanes(engine); lane; lane = wr_lane_next(lane))
        if (count++ < HANDLERS_MOST)
            report_handler(engine, lane);
    if (count > HANDLERS_MOST)
        wr_log_write(engine->log, WEIR_LOG_INFO, "ledger: %zu more handlers", count - HANDLERS_MOST);
}

/* ---- Unrouted groups ------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const struct wr_ledger_unrouted *left = a, *right = b;
    if (left->values != right->values)
        return left->values < right->values ? 1 : -1;
    return strcmp(left->group->name, right->group->name);
}

/* The group may be inside a misspelt one, so its ancestors are compared, too. */
static void suggest_route(char *nearest, const struct wr_config *config, const char *name)
{
    char *word = strdup(name);
    *nearest = '\0';
    for (char *end = word; end && !*nearest; end = strrchr(word, '.')) {
        if (end != word)
            *end = '\0';
        struct wr_suggest suggest;
        wr_suggest_init(&suggest, word);
        for (size_t i = 0; i < config->route_count; i++)
            wr_suggest_try(&suggest, config->routes[i].group);
        wr_suggest_text(&suggest, nearest, WR_SUGGEST_ROOM);
    }
    free(word);
}

/* Whether one of the route's handlers is there: they may have been left out, or have had errors. */
static bool has_handlers(struct wr_engine *engine, const struct wr_config *config,
                         const struct wr_config_route *route)
{
    struct wr_visit visit;
    wr_engine_enter(engine, &visit);
    const struct wr_router *router = engine->dispatcher.drain.router;
    bool has = router && router->config == config && router->routes[route - config->routes + 1].lane_count;
    wr_engine_leave(&visit);
    return has;
}

static void report_group(struct wr_engine *engine, int level, const struct wr_config *config,
                         const struct wr_ledger_unrouted *unrouted)
{
    char shown[WR_UTF8_QUOTE_ROOM], above[WR_UTF8_QUOTE_ROOM], nearest[WR_SUGGEST_ROOM];
    const char *name = unrouted->group->name;
    struct wr_buffer line = {0};
    const struct wr_config_route *route = wr_config_find_route(config, name, false);
    wr_buffer_put_format(&line, "group %s: %" PRIu64 " values had no handler: ", quote(shown, name),
                         unrouted->values);
    if (!route) {
        suggest_route(nearest, config, name);
        wr_buffer_put_format(&line, "no route matches%s", nearest);
    } else if (route->count == 0) {
        wr_buffer_put_format(&line, "the route of %s is empty", quote(above, route->group));
    } else if (!has_handlers(engine, config, route)) {
        wr_buffer_put_format(&line, "none of the handlers in the route of %s is there",
                             quote(above, route->group));
    } else {
        wr_buffer_put_format(&line, "added while it had no route; now it has the route of %s",
                             quote(above, route->group));
    }
    write_line(engine, level, &line);
}

static void report_groups(struct wr_engine *engine, int level, const struct wr_config *config)
{
    size_t count;
    uint64_t rest = 0;
    struct wr_ledger_unrouted *groups = wr_ledger_list_unrouted(engine, &count);
    if (count)
        qsort(groups, count, sizeof *groups, compare);
    for (size_t i = 0; i < count; i++) {
        if (i < GROUPS_MOST)
            report_group(engine, level, config, &groups[i]);
        else
            rest += groups[i].values;
    }
    if (count > GROUPS_MOST)
        wr_log_write(engine->log, level, "ledger: %zu more groups, whose %" PRIu64 " values had no handler",
                     count - GROUPS_MOST, rest);
    free(groups);
}

void wr_report_unrouted(struct wr_engine *engine, int level)
{
    uint64_t generation;
    struct wr_config *config = wr_engine_config(engine, &generation);
    report_groups(engine, level, config);
    wr_config_drop(config);
}

/* ---- Unused routes --------------------------------------------------------------------------- */

/* Returns the indexes of unused routes in the configuration; the caller frees them. The route of weir's own
 * metrics is left out: they are added by a timer, so a short program may have none. */
static size_t *list_unused(struct wr_engine *engine, const struct wr_config *config, size_t *count)
{
    struct wr_visit visit;
    *count = 0;
    size_t *unused = calloc(config->route_count + 1, sizeof *unused);
    wr_engine_enter(engine, &visit);
    const struct wr_router *router = engine->dispatcher.drain.router;
    for (size_t i = 0; unused && router && router->config == config && i < config->route_count; i++)
        if (!router->routes[i + 1].groups && !wr_config_is_own_group(config->routes[i].group))
            unused[(*count)++] = i;
    wr_engine_leave(&visit);
    return unused;
}

static void report_route(struct wr_engine *engine, const char *group)
{
    char shown[WR_UTF8_QUOTE_ROOM], nearest[WR_SUGGEST_ROOM];
    struct wr_suggest suggest;
    wr_suggest_init(&suggest, group);
    struct wr_group *used = atomic_load_explicit(&engine->registry->last_group, memory_order_acquire);
    for (; used; used = used->next)
        wr_suggest_try(&suggest, used->name);
    wr_log_write(engine->log, WEIR_LOG_INFO, "ledger: route %s: never used%s", quote(shown, group),
                 wr_suggest_text(&suggest, nearest, sizeof nearest));
}

static void report_routes(struct wr_engine *engine, const struct wr_config *config)
{
    size_t count;
    size_t *unused = list_unused(engine, config, &count);
    for (size_t i = 0; i < count && i < ROUTES_MOST; i++)
        report_route(engine, config->routes[unused[i]].group);
    if (count > ROUTES_MOST)
        wr_log_write(engine->log, WEIR_LOG_INFO, "ledger: %zu more routes never used", count - ROUTES_MOST);
    free(unused);
}

/* ---- Unused entries of "metrics" ------------------------------------------------------------- */

/* Those of weir's own metrics are left out, for the reason above. */
static void report_entries(struct wr_engine *engine, const struct wr_metric_rules *rules)
{
    char name[WR_UTF8_QUOTE_ROOM], group[WR_UTF8_QUOTE_ROOM];
    const struct wr_metric_rule *rule;
    size_t count = 0;
    for (size_t i = 0; (rule = wr_metric_rules_unmatched(rules, i)); i = (size_t)(rule - rules->items) + 1) {
        if (wr_config_is_own_group(rule->group) || count++ >= ENTRIES_MOST)
            continue;
        wr_log_write(engine->log, WEIR_LOG_INFO, "ledger: entry %s of %s in \"metrics\": matched no name",
                     quote(name, rule->pattern), quote(group, rule->group));
    }
    if (count > ENTRIES_MOST)
        wr_log_write(engine->log, WEIR_LOG_INFO, "ledger: %zu more entries of \"metrics\" matched no name",
                     count - ENTRIES_MOST);
}

/* Takes no lock: at the end of a process, threads that held one may be gone. */
static uint64_t count_refused(const struct wr_engine *engine)
{
    uint64_t count = 0;
    for (int i = 0; i < WEIR_REFUSED_MAX; i++)
        count += atomic_load(&engine->producers->refused[i]);
    return count;
}

void wr_report_write_late(const struct wr_engine *engine, int level)
{
    if (!atomic_load(&engine->reported))
        return;
    uint64_t late = count_refused(engine) - atomic_load(&engine->reported_refused);
    if (late)
        wr_log_write(engine->log, level,
                     "ledger: process %ld: %" PRIu64 " more values refused, which were added after the end",
                     (long)getpid(), late);
}

void wr_report_write(struct wr_engine *engine)
{
    uint64_t generation;
    atomic_store(&engine->reported_refused, count_refused(engine));
    atomic_store(&engine->reported, true);
    if (!wr_log_wants(engine->log, WEIR_LOG_INFO))
        return;
    struct wr_config *config = wr_engine_config(engine, &generation);
    report_process(engine, config);
    report_handlers(engine);
    report_groups(engine, WEIR_LOG_INFO, config);
    report_routes(engine, config);
    report_entries(engine, &config->metrics);
    wr_config_drop(config);
}
