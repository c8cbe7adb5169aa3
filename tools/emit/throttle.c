#include "throttle.h"

#include <string.h>

#include <weir/weir.h>

#include "os/clock.h"
#include "text/common.h"
#include "config/config.h"
#include "engine/engine.h"
#include "lane/flush.h"
#include "lane/lane.h"
#include "runtime/runtime.h"
#include "lane/tally.h"

enum { SLICE_MS = 50, RESERVE = 8 };

/* ---- One lane's room ------------------------------------------------------------------------- */

/* Moves all values from the rings to the lanes. */
static void run_round(struct wr_engine *engine)
{
    struct wr_visit visit;
    int64_t next_ns;
    wr_engine_enter(engine, &visit);
    wr_dispatcher_round(&engine->dispatcher, &next_ns);
    wr_engine_leave(&visit);
}

/* Caller holds the lane lock. One part in RESERVE stays free for weir's own metrics. An event that is larger
 * than the queue fits if the queue is empty. */
static uint64_t find_room(const struct wr_lane *lane, uint64_t bytes)
{
    uint64_t bound = lane->settings.queue_bytes - lane->settings.queue_bytes / RESERVE;
    uint64_t queued = wr_lane_queued_bytes(lane);
    if (!queued && bound < bytes)
        return bytes;
    return bound > queued ? bound - queued : 0;
}

/* Ends `linger`, but not the back-off of a failing handler. */
static void request_flush(struct wr_lane *lane)
{
    weir_handler_stats stats;
    wr_tally_take(&stats, lane, 0);
    if (!stats.failing)
        wr_flush_request(lane, WR_NEVER);
}

static uint64_t read_room(struct wr_lane *lane, uint64_t bytes)
{
    sigset_t signals;
    wr_lane_enter_from_outside(lane, &signals);
    uint64_t room = find_room(lane, bytes);
    wr_lane_leave_to_outside(lane, &signals);
    return room;
}

/* Waits up to SLICE_MS for the lane to make progress. Returns its room. */
static uint64_t wait_for_room(struct wr_lane *lane, uint64_t bytes)
{
    sigset_t signals;
    request_flush(lane);
    wr_lane_enter_from_outside(lane, &signals);
    if (find_room(lane, bytes) < bytes)
        wr_condition_wait_open(&lane->progress, &lane->lock, wr_clock_deadline_ns(SLICE_MS), &signals);
    uint64_t room = find_room(lane, bytes);
    wr_lane_leave_to_outside(lane, &signals);
    return room;
}

/* ---- The lanes of a group -------------------------------------------------------------------- */

static bool leads_to(const struct wr_config *config, const struct wr_config_route *route, const char *handler)
{
    for (size_t i = 0; route && i < route->count; i++) {
        const char *item = route->items[i];
        bool inherits = strcmp(item, "inherit") == 0;
        if (inherits ? leads_to(config, wr_config_find_route(config, route->group, true), handler)
                     : strcmp(item, handler) == 0)
            return true;
    }
    return false;
}

/* Full queues of other handlers, such as that of weir's own metrics, do not matter. */
static bool is_routed_to(struct wr_engine *engine, const char *group, const struct wr_lane *lane)
{
    uint64_t generation;
    struct wr_config *config = wr_engine_config(engine, &generation);
    bool found = leads_to(config, wr_config_find_route(config, group, false), lane->name);
    wr_config_drop(config);
    return found;
}

bool throttle_reserve(struct throttle *throttle, const char *group, uint64_t bytes)
{
    if (throttle->room >= bytes) {
        throttle->room -= bytes;
        return true;
    }
    struct wr_engine *engine = wr_runtime_engine(wr_runtime_get());
    uint64_t least = UINT64_MAX;
    bool fits = true;
    run_round(engine);
    for (struct wr_lane *lane = wr_engine_lanes(engine); lane; lane = lane->next) {
        uint64_t room = read_room(lane, bytes);
        if (room < bytes && is_routed_to(engine, group, lane)) {
            room = wait_for_room(lane, bytes);
            fits &= room >= bytes;
        }
        least = room < least ? room : least;
    }
    /* a full queue that does not matter for this group may matter for the next one: no room is kept then */
    throttle->room = fits && least >= bytes ? least - bytes : 0;
    return fits;
}
