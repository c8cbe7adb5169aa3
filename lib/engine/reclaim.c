#include "engine/reclaim.h"

#include "dispatch/mapper.h"
#include "dispatch/summer.h"
#include "os/pages.h"
#include "registry/reuse.h"

/* ---- Calls ----------------------------------------------------------------------------------- */

static void note_calls(struct wr_reclaim *reclaim, const struct wr_dispatcher *dispatcher)
{
    wr_producers_note_reads(dispatcher->producers, reclaim->reads);
}

static bool have_calls_ended(const struct wr_reclaim *reclaim, const struct wr_dispatcher *dispatcher)
{
    return wr_producers_have_read(dispatcher->producers, reclaim->reads) &&
           !wr_reuse_has_readers(dispatcher->drain.registry);
}

/* ---- Lanes ----------------------------------------------------------------------------------- */

/* Lanes are only prepended, and a later one gets nothing of what was added before. Returns false without
 * memory. */
static bool take_bounds(struct wr_reclaim *reclaim, struct wr_lane *lane)
{
    uint32_t i = reclaim->bound_count = (uint32_t)wr_lane_count(lane);
    if (!WR_PAGES_HAS_ROOM(&reclaim->bounds, &reclaim->bound_room, i))
        return false;
    for (; lane; lane = wr_lane_next(lane))
        wr_lane_bound_take(lane, &reclaim->bounds[--i]);
    return true;
}

/* What is only on disk counts as unsettled: it is read back by the ids of now. */
static bool are_lanes_done(const struct wr_reclaim *reclaim, struct wr_lane *lane)
{
    for (size_t i = wr_lane_count(lane); lane; lane = wr_lane_next(lane))
        if (--i < reclaim->bound_count && !wr_lane_bound_is_past(lane, &reclaim->bounds[i]))
            return false;
    return true;
}

/* ---- Series ---------------------------------------------------------------------------------- */

static bool may_go(void *ctx, uint32_t series)
{
    for (struct wr_lane *lane = ctx; lane; lane = wr_lane_next(lane)) {
        struct wr_summer *summer = wr_lane_summer(lane);
        if (summer && !wr_summer_let_go(summer, series))
            return false;
    }
    return true;
}

static void forget(void *ctx, uint32_t series)
{
    const struct wr_router *router = ctx;
    for (size_t i = 0; router && i < router->mapper_count; i++)
        wr_mapper_forget(&router->mappers[i], series);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static enum wr_reclaim_step begin(struct wr_reclaim *reclaim, struct wr_dispatcher *dispatcher)
{
    struct wr_registry *registry = dispatcher->drain.registry;
    if (wr_reuse_waiting(registry) < WR_RECLAIM_LEAST || !wr_reuse_begin(registry))
        return WR_RECLAIM_NOTHING;
    note_calls(reclaim, dispatcher);
    return WR_RECLAIM_CALLS;
}

static enum wr_reclaim_step unlink_streams(struct wr_reclaim *reclaim, struct wr_dispatcher *dispatcher,
                                           struct wr_lane *lanes)
{
    struct wr_registry *registry = dispatcher->drain.registry;
    if (!are_lanes_done(reclaim, lanes))
        return WR_RECLAIM_LANES;
    if (!wr_reuse_unlink(registry, forget, dispatcher->drain.router))
        return WR_RECLAIM_NOTHING;
    note_calls(reclaim, dispatcher);
    return WR_RECLAIM_LAST_CALLS;
}

static enum wr_reclaim_step take_step(struct wr_reclaim *reclaim, struct wr_dispatcher *dispatcher,
                                      struct wr_lane *lanes)
{
    switch (reclaim->step) {
    case WR_RECLAIM_NOTHING: return begin(reclaim, dispatcher);
    case WR_RECLAIM_CALLS: return have_calls_ended(reclaim, dispatcher) ? WR_RECLAIM_ROUND : WR_RECLAIM_CALLS;
    case WR_RECLAIM_ROUND: wr_dispatcher_take_cells(dispatcher); return WR_RECLAIM_SUMMARIES;
    case WR_RECLAIM_SUMMARIES:
        return wr_reuse_check(dispatcher->drain.registry, may_go, lanes) && take_bounds(reclaim, lanes)
                   ? WR_RECLAIM_LANES
                   : WR_RECLAIM_SUMMARIES;
    case WR_RECLAIM_LANES: return unlink_streams(reclaim, dispatcher, lanes);
    case WR_RECLAIM_LAST_CALLS:
        if (!have_calls_ended(reclaim, dispatcher))
            return WR_RECLAIM_LAST_CALLS;
        wr_reuse_release(dispatcher->drain.registry);
        return WR_RECLAIM_NOTHING;
    }
    return reclaim->step;
}

void wr_reclaim_tend(struct wr_reclaim *reclaim, struct wr_dispatcher *dispatcher, struct wr_lane *lanes)
{
    reclaim->step = take_step(reclaim, dispatcher, lanes);
}
