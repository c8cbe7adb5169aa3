#include "lane/spool_policy.h"

#include <inttypes.h>
#include <stdio.h>

#include "text/common.h"

enum {
    STEPS_IN_LIMIT = 64,
    SMALLEST_STEP = 4 * 1024,
    LARGEST_STEP = 256 * 1024,
    LOG_AGAIN_S = 60,
    TRY_AGAIN_S = 1,
    SEARCH_AGAIN_S = 60,
    BUSY_MS = 50,
};

uint64_t wr_spool_policy_step_bytes(uint64_t limit)
{
    uint64_t bytes = limit / STEPS_IN_LIMIT;
    return bytes < SMALLEST_STEP ? SMALLEST_STEP : bytes > LARGEST_STEP ? LARGEST_STEP : bytes;
}

/* ---- Contents -------------------------------------------------------------------------------- */

static bool is_usable(const struct wr_lane *lane)
{
    const struct wr_spool_state *spool_state = &lane->spool_state;
    return lane->settings.spool_limit && spool_state->place && spool_state->registry && !spool_state->busy;
}

static bool has_flight(const struct wr_lane *lane)
{
    const struct wr_flight *flight = &lane->flight;
    return flight->range.segment && !flight->spooled && !flight->settled_early;
}

bool wr_spool_policy_has_memory(const struct wr_lane *lane)
{
    return lane->spool_state.moving.segment || has_flight(lane) || !wr_queue_is_empty(&lane->queue);
}

/* The oldest samples that can be moved at this moment; NULL: there are none. */
static const struct wr_range *find_movable(const struct wr_lane *lane)
{
    if (lane->spool_state.moving.segment)
        return &lane->spool_state.moving;
    if (has_flight(lane) && !lane->flight.in_handler)
        return &lane->flight.range;
    return wr_queue_is_empty(&lane->queue) ? NULL : wr_queue_front(&lane->queue);
}

bool wr_spool_policy_must_save(const struct wr_lane *lane, int64_t now_ns)
{
    if (!lane->stopping || !lane->settings.spool_limit)
        return false;
    return wr_delivery_is_failing(&lane->delivery) ||
           (lane->stop_deadline_ns != WR_NEVER && now_ns >= lane->spool_state.save_at_ns);
}

/* A failing handler gets one more attempt, with what is on disk by then. */
bool wr_spool_policy_may_leave(const struct wr_lane *lane, int64_t now_ns)
{
    bool has_time = lane->stop_deadline_ns == WR_NEVER || now_ns < lane->spool_state.save_at_ns;
    bool tries = wr_delivery_is_failing(&lane->delivery) && now_ns >= lane->delivery.retry_at_ns;
    return wr_spool_policy_must_save(lane, now_ns) && !(has_time && tries);
}

/* ---- What to move ---------------------------------------------------------------------------- */

/* A flush waits, and the handler fails. */
static bool is_flush_failing(const struct wr_lane *lane, int64_t now_ns)
{
    return lane->flushed < lane->flush_wanted && wr_delivery_is_failing(&lane->delivery) &&
           now_ns < lane->delivery.retry_at_ns && wr_lane_front_in_memory(lane) < lane->flush_wanted;
}

/* How long a handler may be busy before samples are moved to disk: well below block_timeout, after which they
 * would be dropped. */
static int64_t busy_limit_ns(const struct wr_lane *lane)
{
    int64_t half_ns = lane->settings.block_timeout_ns / 2;
    return half_ns < BUSY_MS * WR_NS_PER_MS ? half_ns : BUSY_MS * WR_NS_PER_MS;
}

/* When a queue that is half full is to be moved: at once if the handler does not take samples, else when a
 * single call of it takes too long. */
static int64_t fill_time(const struct wr_lane *lane)
{
    if (!wr_lane_is_half_full(lane))
        return WR_NEVER;
    if (wr_delivery_is_failing(&lane->delivery) || lane->spool_state.samples ||
        lane->settings.overflow != WR_OVERFLOW_BLOCK || lane->pressure.state == WR_BACKPRESSURE_STALLED)
        return 0;
    return lane->worker.busy_since_ns ? lane->worker.busy_since_ns + busy_limit_ns(lane) : WR_NEVER;
}

/* Once moving begins, everything queued by then is moved. After that the handler has a turn before moving
 * begins again. */
static int64_t spill_time(struct wr_lane *lane, int64_t now_ns)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    if (spool_state->spilling && find_movable(lane)->position < spool_state->spill_end)
        return 0;
    spool_state->handler_turn |= spool_state->spilling;
    int64_t at_ns = spool_state->handler_turn ? WR_NEVER : fill_time(lane);
    spool_state->spilling = at_ns <= now_ns;
    spool_state->spill_end = lane->position;
    return at_ns;
}

int64_t wr_spool_policy_time(struct wr_lane *lane, int64_t now_ns)
{
    if (!is_usable(lane) || lane->end_reason != WR_LANE_LIVES || !find_movable(lane))
        return WR_NEVER;
    bool at_once = wr_spool_policy_must_save(lane, now_ns) || is_flush_failing(lane, now_ns);
    int64_t at_ns = at_once ? 0 : spill_time(lane, now_ns);
    return at_ns > lane->spool_state.put_at_ns ? at_ns : lane->spool_state.put_at_ns;
}

/* Samples in flight are older than those queued. If the handler is working on them its outcome will be ignored.
 */
static void take_flight(struct wr_lane *lane)
{
    struct wr_flight *flight = &lane->flight;
    lane->spool_state.moving = flight->range;
    if (!flight->in_handler) {
        *flight = (struct wr_flight){0};
        return;
    }
    wr_segment_hold(flight->range.segment);
    flight->settled_early = true;
}

static void take(struct wr_lane *lane, bool also_in_handler)
{
    if (lane->spool_state.moving.segment)
        return; /* from an attempt that failed */
    if (has_flight(lane) && (!lane->flight.in_handler || also_in_handler))
        take_flight(lane);
    else
        lane->spool_state.moving =
            wr_queue_take(&lane->queue, UINT32_MAX, wr_spool_policy_step_bytes(lane->settings.spool_limit));
}

bool wr_spool_policy_prepare(struct wr_lane *lane, int64_t now_ns)
{
    if (wr_spool_policy_time(lane, now_ns) > now_ns)
        return false;
    take(lane, false);
    return true;
}

bool wr_spool_policy_prepare_last(struct wr_lane *lane, int64_t now_ns)
{
    if (!is_usable(lane) || lane->end_reason != WR_LANE_LIVES || !wr_spool_policy_has_memory(lane) ||
        lane->spool_state.put_at_ns > now_ns)
        return false;
    take(lane, true);
    return true;
}

/* ---- What to read ---------------------------------------------------------------------------- */

/* Even a program that ends at once searches once; otherwise samples left by such programs would never be
 * adopted. */
int64_t wr_spool_policy_search_time(const struct wr_lane *lane)
{
    const struct wr_spool_state *spool_state = &lane->spool_state;
    bool may = is_usable(lane) && !spool_state->samples && !wr_delivery_is_failing(&lane->delivery) &&
               (!lane->stopping || !spool_state->search_at_ns);
    return may ? spool_state->search_at_ns : WR_NEVER;
}

bool wr_spool_policy_must_fetch(const struct wr_lane *lane)
{
    return lane->spool_state.samples && !lane->flight.range.segment && !lane->spool_state.fetched.segment;
}

/* ---- Results --------------------------------------------------------------------------------- */

void wr_spool_policy_update(struct wr_lane *lane, const struct wr_spool_policy_disk *state)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    if (state->bytes < spool_state->bytes)
        spool_state->put_at_ns = 0; /* there is room again */
    spool_state->bytes = state->bytes;
    if (state->front > spool_state->front)
        spool_state->front = state->front;
}

static void log_spooling(struct wr_lane *lane, int64_t now_ns)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    if (spool_state->spooling_logged || now_ns < spool_state->spooling_log_ns ||
        wr_spool_policy_must_save(lane, now_ns))
        return;
    wr_lane_log(lane, WEIR_LOG_WARNING, "spooling to %s", spool_state->place);
    spool_state->spooling_logged = true;
    spool_state->spooling_log_ns = now_ns + LOG_AGAIN_S * WR_NS_PER_S;
}

void wr_spool_policy_moved(struct wr_lane *lane, int64_t now_ns)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    struct wr_range moved = spool_state->moving;
    spool_state->moving = (struct wr_range){0};
    spool_state->trouble[0] = '\0';
    wr_range_settle(&moved, moved.count);
    if (!spool_state->own || moved.position < spool_state->front)
        spool_state->front = moved.position;
    spool_state->samples += moved.count;
    spool_state->extra += (uint64_t)moved.extra;
    spool_state->own += moved.count;
    wr_sync_waiters_complete(&lane->sync_waiters, moved.position, moved.position + moved.count,
                             WEIR_ERR_SPOOLED);
    wr_segment_drop(moved.segment);
    wr_lane_set_spooling(lane, true, now_ns);
    log_spooling(lane, now_ns);
    wr_lane_made_progress(lane, now_ns);
}

/* At most once a minute. */
static void log_error(struct wr_lane *lane, int level, const char *doing, const char *message, int64_t now_ns)
{
    char backlog[80];
    if (now_ns < lane->spool_state.error_log_ns)
        return;
    lane->spool_state.error_log_ns = now_ns + LOG_AGAIN_S * WR_NS_PER_S;
    wr_spool_policy_describe(lane, backlog, sizeof backlog);
    wr_lane_log(lane, level, "cannot %s: %s; %s", doing, message, backlog);
}

/* What was in flight is older than what was moved while the handler had it: it stays in front. */
static void put_back(struct wr_lane *lane)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    if (lane->flight.range.segment || !spool_state->own || spool_state->moving.position >= spool_state->front)
        return;
    lane->flight.range = spool_state->moving;
    spool_state->moving = (struct wr_range){0};
}

void wr_spool_policy_failed(struct wr_lane *lane, bool full, const char *message, int64_t now_ns)
{
    put_back(lane);
    lane->spool_state.spilling = false;
    snprintf(lane->spool_state.trouble, sizeof lane->spool_state.trouble, "%s", message);
    lane->spool_state.put_at_ns = now_ns + TRY_AGAIN_S * WR_NS_PER_S;
    wr_lane_set_spooling(lane, false, now_ns);
    log_error(lane, full ? WEIR_LOG_WARNING : WEIR_LOG_ERROR, "spool", message, now_ns);
}

/* What is left of the values of damaged summaries when nothing else is on disk. */
static void drop_extra_if_empty(struct wr_lane *lane)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    if (spool_state->samples || !spool_state->extra)
        return;
    wr_lane_count_drop(lane, WEIR_DROPPED_CORRUPT, spool_state->extra);
    spool_state->extra = 0;
}

void wr_spool_policy_lost(struct wr_lane *lane, enum weir_drop why, const struct wr_spool_count *lost)
{
    wr_lane_count_drop(lane, why, lost->samples + lost->extra);
    lane->spool_state.samples -= lost->samples;
    lane->spool_state.extra -= lost->extra;
    lane->spool_state.own -= lost->own;
    drop_extra_if_empty(lane);
    lane->spool_state.spooling_logged &= lane->spool_state.samples > 0;
    wr_condition_wake(&lane->progress);
}

void wr_spool_policy_log_damage(struct wr_lane *lane, uint64_t samples, bool kept)
{
    wr_losses_state(lane, WEIR_DROPPED_CORRUPT, samples);
    if (samples)
        wr_lane_log(lane, WEIR_LOG_ERROR, "%" PRIu64 " spooled values are damaged and lost%s", samples,
                    kept ? "; the damaged file is kept as .bad" : "");
    else if (kept)
        wr_lane_log(lane, WEIR_LOG_WARNING, "a damaged file of the spool is kept as .bad");
}

void wr_spool_policy_found(struct wr_lane *lane, const struct wr_spool_found *found, int64_t now_ns)
{
    uint64_t values = found->samples + found->extra;
    lane->spool_state.samples += found->samples;
    lane->spool_state.extra += found->extra;
    lane->recovered += values;
    lane->spool_state.search_at_ns = found->more ? now_ns : now_ns + SEARCH_AGAIN_S * WR_NS_PER_S;
    if (found->samples)
        wr_lane_log(lane, WEIR_LOG_INFO, "%" PRIu64 " values of earlier processes found in %s", values,
                    lane->spool_state.place);
}

void wr_spool_policy_not_found(struct wr_lane *lane, const char *message, int64_t now_ns)
{
    lane->spool_state.search_at_ns = now_ns + SEARCH_AGAIN_S * WR_NS_PER_S;
    log_error(lane, WEIR_LOG_ERROR, "look for spooled values", message, now_ns);
}

void wr_spool_policy_not_fetched(struct wr_lane *lane, const char *message, int64_t now_ns)
{
    wr_delivery_delay(&lane->delivery, now_ns + TRY_AGAIN_S * WR_NS_PER_S);
    log_error(lane, WEIR_LOG_ERROR, "read what was spooled", message, now_ns);
}

void wr_spool_policy_fetched(struct wr_lane *lane, const struct wr_range *range, struct wr_label_set *labels,
                             bool own)
{
    wr_spool_state_forget_fetched(&lane->spool_state);
    lane->spool_state.fetched = *range;
    lane->spool_state.labels = labels;
    lane->spool_state.fetched_own = own;
}

static void log_empty(struct wr_lane *lane)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    wr_lane_log(lane, spool_state->spooling_logged ? WEIR_LOG_WARNING : WEIR_LOG_INFO,
                "the spool is empty again; %" PRIu64 " replayed", spool_state->replayed);
    spool_state->spooling_logged = false;
    spool_state->replayed = 0;
}

void wr_spool_policy_settled(struct wr_lane *lane, uint32_t samples, uint64_t extra, uint64_t next,
                             int64_t now_ns)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    if (!samples)
        return;
    spool_state->samples -= samples;
    spool_state->extra -= extra;
    spool_state->replayed += samples + extra;
    spool_state->settled += samples;
    spool_state->settled_extra += extra;
    if (spool_state->fetched_own) {
        spool_state->own -= samples;
        spool_state->front = next;
    }
    drop_extra_if_empty(lane);
    if (!spool_state->samples)
        log_empty(lane);
    wr_lane_made_progress(lane, now_ns);
}

void wr_spool_policy_describe(const struct wr_lane *lane, char *text, size_t size)
{
    int length = snprintf(text, size, "%" PRIu64 " queued", wr_lane_queued(lane));
    if (lane->spool_state.samples && length > 0 && (size_t)length < size)
        snprintf(text + length, size - (size_t)length, ", %" PRIu64 " spooled",
                 wr_spool_state_values(&lane->spool_state));
}
