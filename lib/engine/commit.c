#include "engine/commit.h"

#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "os/pages.h"
#include "text/common.h"
#include "text/error.h"
#include "engine/plan.h"
#include "lane/lane_config.h"
#include "registry/family.h"

/* What the commit replaces. It is freed after it, without locks: freeing instances calls plugins, and nobody
 * may wait for malloc while the round lock is held (os/pages). */
struct discarded {
    struct wr_lane_discarded handlers;
    size_t room;
    struct wr_router *router;
    struct wr_config *config;
};

static void update_lane(struct wr_engine *engine, struct wr_plan_handler *handler, struct discarded *discarded)
{
    struct wr_lane *lane = handler->lane;
    struct wr_lane_handler described = {0};
    bool is_pushed = handler->is_pushed && engine->pushed_labels;
    struct wr_lane_change change = {.labels = is_pushed ? engine->pushed_labels : engine->labels,
                                    .end_reason = handler->ending,
                                    .journaled = &engine->journals};
    if (handler->new_lane) {
        handler->new_lane = false;
        wr_lane_set_next(lane, engine->lanes);
        engine->lanes = lane;
    }
    if (handler->instance) {
        described = wr_instance_for_lane(handler->instance);
        change.handler = &described;
    }
    if (wr_lane_config_apply(lane, &change, &discarded->handlers))
        wr_instance_attach(handler->instance, lane);
    handler->instance = NULL;
}

/* Lanes that keep their handler must still have it. Cancels their stop, so that they will not end. */
static bool claim_lanes(struct wr_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct wr_plan_handler *handler = &plan->handlers[i];
        if (!handler->lane || handler->instance || handler->ending != WR_LANE_LIVES)
            continue;
        if (!wr_lane_config_keep(handler->lane))
            return false;
    }
    return true;
}

static bool is_planned(const struct wr_plan *plan, const struct wr_lane *lane)
{
    const struct wr_plan_handler *handler = wr_plan_find(plan, wr_lane_name(lane));
    return handler && handler->lane == lane;
}

static void remove_lane(struct wr_engine *engine, struct wr_lane *lane, int64_t deadline_ns,
                        struct discarded *discarded)
{
    if (wr_lane_config_remove(lane, deadline_ns, &discarded->handlers))
        engine->leaving++;
}

/* Equal labels keep their number, so that encoders keep the text they made of them. */
static void change_labels(struct wr_label_set **labels, struct wr_label_set **planned)
{
    if (wr_labels_equal(*labels, *planned))
        return;
    wr_labels_drop(*labels);
    *labels = *planned;
    *planned = NULL;
}

static void change_lanes(struct wr_engine *engine, struct wr_plan *plan, int64_t now_ns,
                         struct discarded *discarded)
{
    int64_t deadline_ns = now_ns + plan->config->settings.shutdown_timeout_ns;
    for (size_t i = 0; i < plan->count; i++)
        if (plan->handlers[i].lane)
            update_lane(engine, &plan->handlers[i], discarded);
    for (struct wr_lane *lane = engine->lanes; lane; lane = wr_lane_next(lane))
        if (!is_planned(plan, lane))
            remove_lane(engine, lane, deadline_ns, discarded);
}

static struct wr_config *change_config(struct wr_engine *engine, struct wr_plan *plan)
{
    const struct wr_settings *settings = &plan->config->settings;
    atomic_store(&engine->registry->max, (uint32_t)settings->max_series);
    wr_producers_use_ticks(engine->producers, settings->clock == WR_CLOCK_AUTO);
    wr_config_hold(plan->config);
    wr_family_set_rules(engine->registry, &plan->config->metrics);
    struct wr_config *before = atomic_exchange(&engine->config, plan->config);
    atomic_fetch_add(&engine->generation, 1);
    atomic_store(&engine->configured_ns, wr_clock_wall_ns());
    return before;
}

/* A journal that has been started cannot be moved: another place takes effect at the next start. */
static void change_journal(struct wr_engine *engine, const char *place, int64_t now_ns)
{
    if (engine->journal) {
        if (!place || strcmp(place, engine->journal_place) != 0)
            wr_deferred_log_add(&engine->dispatcher.deferred_log, "journal", WEIR_LOG_WARNING,
                                "settings.journal changed; takes effect at the next start");
        return;
    }
    wr_pages_put(engine->journal_place);
    engine->journal_place = place ? wr_pages_copy(place) : NULL;
    if (place && !engine->journal_place)
        wr_deferred_log_add(&engine->dispatcher.deferred_log, "journal", WEIR_LOG_ERROR,
                            "out of memory; values are not journaled");
    wr_engine_start_journal(engine, now_ns);
}

static void commit(struct wr_engine *engine, struct wr_plan *plan, struct discarded *discarded)
{
    int64_t now_ns = wr_clock_monotonic_ns();
    discarded->router = wr_dispatcher_switch(&engine->dispatcher, plan->router);
    plan->router = NULL;
    change_labels(&engine->labels, &plan->labels);
    change_labels(&engine->pushed_labels, &plan->pushed_labels);
    change_lanes(engine, plan, now_ns, discarded);
    change_journal(engine, plan->config->settings.journal, now_ns);
    discarded->config = change_config(engine, plan);
    wr_selfmetrics_configure(&engine->selfmetrics, &engine->dispatcher,
                             plan->config->settings.stats_interval_ns, now_ns);
    wr_dispatcher_hurry(&engine->dispatcher); /* timers may have changed */
}

/* Two for each lane. Later commits than the plan's may add lanes, but then this one does not take place. */
static void make_room(struct discarded *discarded, struct wr_engine *engine, const struct wr_plan *plan)
{
    discarded->room = 2 * (wr_lane_count(wr_engine_lanes(engine)) + plan->count) + 1;
    discarded->handlers.instances = calloc(discarded->room, sizeof(struct wr_instance *));
}

static void free_discarded(struct discarded *discarded)
{
    for (size_t i = 0; i < discarded->handlers.count; i++)
        wr_instance_free(discarded->handlers.instances[i]);
    free(discarded->handlers.instances);
    wr_router_free(discarded->router, wr_clock_monotonic_ns());
    wr_config_drop(discarded->config);
}

bool wr_commit(struct wr_engine *engine, struct wr_plan *plan)
{
    struct discarded discarded = {0};
    struct wr_visit visit;
    make_room(&discarded, engine, plan);
    wr_engine_enter(engine, &visit);
    /* a shutdown closes the producers, takes the round lock, and then stops the lanes: a commit after that must
     * not restart them. Without a router there are no lanes. */
    bool may_stop = engine->dispatcher.drain.router && atomic_load(&engine->producers->closed);
    bool fits = atomic_load(&engine->generation) == plan->generation && !may_stop;
    fits = fits && discarded.handlers.instances &&
           2 * (wr_lane_count(engine->lanes) + plan->count) < discarded.room && claim_lanes(plan);
    if (fits)
        commit(engine, plan, &discarded);
    wr_engine_leave(&visit);
    free_discarded(&discarded);
    wr_plan_free(plan);
    return fits;
}
