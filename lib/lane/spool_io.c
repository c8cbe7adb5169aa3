#include "lane/spool_io.h"

#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "text/common.h"
#include "text/error.h"
#include "spool/spool.h"
#include "spool/spool_block.h"
#include "lane/spool_policy.h"

/* ---- To the disk and back -------------------------------------------------------------------- */

/* What is taken along. */
struct trip {
    struct wr_lane *lane;
    struct wr_spool *spool; /* NULL: no memory for one */
    char *place;            /* the same */
    struct wr_label_set *labels;
};

static bool set_out(struct trip *trip, struct wr_lane *lane)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    *trip = (struct trip){.lane = lane, .labels = lane->labels};
    wr_labels_hold(trip->labels);
    trip->place = spool_state->place ? strdup(spool_state->place) : NULL;
    if (!spool_state->spool && trip->place)
        spool_state->spool = wr_spool_new(lane->name, spool_state->registry);
    trip->spool = spool_state->spool;
    spool_state->busy = true;
    wr_lane_unlock(lane);
    return trip->place && trip->spool;
}

static void come_home(struct trip *trip)
{
    struct wr_lane *lane = trip->lane;
    struct wr_spool_policy_disk state = {0};
    if (trip->spool)
        state = (struct wr_spool_policy_disk){trip->spool->index.bytes, wr_spool_front(trip->spool)};
    wr_labels_drop(trip->labels);
    free(trip->place);
    wr_lock_enter(&lane->lock);
    lane->spool_state.busy = false;
    wr_spool_policy_update(lane, &state);
    wr_condition_wake(&lane->progress);
    wr_condition_wake(&lane->work);
}

void wr_spool_io_move(struct wr_lane *lane)
{
    struct trip trip;
    struct wr_error error = {0};
    const struct wr_range range = lane->spool_state.moving;
    struct wr_spool_terms terms = {
        .limit = lane->settings.spool_limit,
        .drop_oldest = lane->settings.overflow == WR_OVERFLOW_DROP_OLDEST,
        .first_in_use = lane->spool_state.fetched.segment || lane->flight.spooled,
    };
    struct wr_spool_count dropped = {0};
    enum wr_spool_result result = WR_SPOOL_FAILED;
    if (set_out(&trip, lane)) {
        terms.place = trip.place;
        result = wr_spool_put(trip.spool, &terms, &range, trip.labels, &dropped, &error);
    } else {
        wr_error_no_memory(&error, NULL);
    }
    come_home(&trip);
    int64_t now_ns = wr_clock_monotonic_ns();
    if (dropped.samples)
        wr_spool_policy_lost(lane, WEIR_DROPPED_FULL, dropped.samples, dropped.own);
    if (!lane->spool_state.moving
             .segment) /* it took too long: they are counted as dropped, wherever they are */
        return;
    if (result == WR_SPOOL_OK)
        wr_spool_policy_moved(lane, now_ns);
    else
        wr_spool_policy_failed(lane, result == WR_SPOOL_FULL, error.text, now_ns);
}

void wr_spool_io_search(struct wr_lane *lane)
{
    struct trip trip;
    struct wr_error error = {0};
    struct wr_spool_found found = {0};
    bool looked = set_out(&trip, lane) && wr_spool_adopt(trip.spool, trip.place, &found, &error);
    come_home(&trip);
    int64_t now_ns = wr_clock_monotonic_ns();
    if (looked)
        wr_spool_policy_found(lane, found.samples, found.more, now_ns);
    else
        wr_spool_policy_not_found(lane, error.code ? error.text : "out of memory", now_ns);
    if (found.other_version)
        wr_lane_log(
            lane, WEIR_LOG_ERROR,
            "%s holds values written by another version of weir (format %u, this one reads %d); they are "
            "left as they are",
            lane->spool_state.place ? lane->spool_state.place : "the spool", found.other_version,
            WR_SPOOL_BLOCK_VERSION);
    wr_spool_policy_log_damage(lane, 0, found.kept_bad);
}

/* There is nothing left of what should have been there. */
static void give_up(struct wr_lane *lane)
{
    wr_spool_policy_log_damage(lane, lane->spool_state.samples, false);
    wr_spool_policy_lost(lane, WEIR_DROPPED_CORRUPT, lane->spool_state.samples, lane->spool_state.own);
}

void wr_spool_io_settle(struct wr_lane *lane)
{
    struct trip trip;
    uint32_t settled = lane->spool_state.settled;
    if (!settled || lane->spool_state.busy || lane->fork_pending)
        return;
    lane->spool_state.settled = 0;
    set_out(&trip, lane);
    bool kept = wr_spool_settle(trip.spool, settled);
    come_home(&trip);
    wr_spool_policy_log_damage(lane, 0, kept);
}

void wr_spool_io_fetch(struct wr_lane *lane)
{
    struct trip trip;
    struct wr_error error = {0};
    struct wr_spool_want want = {lane->settings.batch, lane->settings.batch_bytes, lane->labels};
    struct wr_spool_batch batch = {0};
    enum wr_spool_result result = WR_SPOOL_FAILED;
    if (lane->spool_state.settled) { /* what was withheld would be read again */
        wr_spool_io_settle(lane);
        return;
    }
    set_out(&trip, lane);
    if (trip.spool)
        result = wr_spool_fetch(trip.spool, &want, &batch, &error);
    come_home(&trip);
    if (batch.lost.samples)
        wr_spool_policy_lost(lane, WEIR_DROPPED_CORRUPT, batch.lost.samples, batch.lost.own);
    wr_spool_policy_log_damage(lane, batch.lost.samples, batch.kept_bad);
    if (batch.range.segment)
        wr_spool_policy_fetched(lane, &batch.range, batch.labels, batch.own);
    else if (result != WR_SPOOL_OK)
        wr_spool_policy_not_fetched(lane, trip.spool ? error.text : "out of memory", wr_clock_monotonic_ns());
    else
        give_up(lane);
}

void wr_spool_io_tidy(struct wr_lane *lane)
{
    struct trip trip;
    if (!lane->spool_state.spool || lane->spool_state.busy)
        return;
    set_out(&trip, lane);
    wr_spool_tidy(trip.spool);
    come_home(&trip);
}

void wr_spool_io_release(struct wr_lane *lane)
{
    struct trip trip;
    if (!lane->spool_state.spool || lane->spool_state.busy)
        return;
    set_out(&trip, lane);
    wr_spool_leave(trip.spool);
    come_home(&trip);
}
