#include "throttle.h"

#include <poll.h>
#include <string.h>

#include <weir/weir.h>

#include "config/config.h"
#include "engine/engine.h"
#include "lane/lane.h"
#include "lane/lane_flush.h"
#include "lane/lane_stats.h"
#include "os/clock.h"
#include "runtime/runtime.h"
#include "text/common.h"

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

/* One part in RESERVE stays free for weir's own metrics. */
static uint64_t without_reserve(uint64_t bytes)
{
    return bytes - bytes / RESERVE;
}

static uint64_t subtract(uint64_t from, uint64_t bytes)
{
    return from > bytes ? from - bytes : 0;
}

/* Also of the spool, which takes what is queued: a full one may delete its oldest files. */
static uint64_t find_spool_room(const struct wr_lane_status *status)
{
    const weir_handler_stats *stats = &status->stats;
    if (!stats->spool_bytes)
        return UINT64_MAX;
    return subtract(without_reserve(stats->spool_limit), stats->spool_bytes + stats->queue_bytes);
}

/* An event that is larger than the queue fits if the queue is empty. */
static uint64_t find_queue_room(const struct wr_lane_status *status, uint64_t bytes)
{
    uint64_t bound = without_reserve(status->queue_bound), queued = status->stats.queue_bytes;
    return !queued && bound < bytes ? bytes : subtract(bound, queued);
}

static uint64_t read_room(struct wr_lane *lane, uint64_t bytes)
{
    struct wr_lane_status status;
    wr_lane_stats_get_status(&status, lane, 0);
    uint64_t room = find_queue_room(&status, bytes), spool_room = find_spool_room(&status);
    return room < spool_room ? room : spool_room;
}

/* Waits up to SLICE_MS for the lane to make progress. Returns its room. The flush ends `linger`, but not the
 * back-off of a failing handler. */
static uint64_t wait_for_room(struct wr_lane *lane, uint64_t bytes)
{
    struct wr_lane_status status;
    wr_lane_stats_get_status(&status, lane, 0);
    if (!status.stats.failing)
        wr_lane_flush_request(lane, WR_NEVER);
    if (find_spool_room(&status) < bytes)
        poll(NULL, 0, SLICE_MS); /* nothing wakes who waits for the disk */
    else
        wr_lane_wait_queued(lane, subtract(without_reserve(status.queue_bound), bytes),
                            wr_clock_deadline_ns(SLICE_MS));
    return read_room(lane, bytes);
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
    bool found = leads_to(config, wr_config_find_route(config, group, false), wr_lane_name(lane));
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
    for (struct wr_lane *lane = wr_engine_lanes(engine); lane; lane = wr_lane_next(lane)) {
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
