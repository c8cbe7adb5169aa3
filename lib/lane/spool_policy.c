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

/* The oldest samples that can be moved at this moment; NULL: there are none. */
static const struct wr_range *find_movable(const struct wr_lane *lane)
{
    const struct wr_lane_ledger *ledger = &lane->ledger;
    if (ledger->moving.segment)
        return &ledger->moving;
    if (wr_lane_ledger_flight(ledger) && !ledger->flight.in_handler)
        return &ledger->flight.range;
    return wr_queue_is_empty(&ledger->queue) ? NULL : wr_queue_front(&ledger->queue);
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
           now_ns < lane->delivery.retry_at_ns &&
           wr_lane_ledger_front_in_memory(&lane->ledger) < lane->flush_wanted;
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
    if (wr_delivery_is_failing(&lane->delivery) || lane->ledger.spooled.samples ||
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
    spool_state->spill_end = lane->ledger.position;
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

static void take(struct wr_lane *lane, bool also_in_handler)
{
    wr_lane_ledger_move(&lane->ledger, also_in_handler, wr_spool_policy_step_bytes(lane->settings.spool_limit));
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
    if (!is_usable(lane) || lane->end_reason != WR_LANE_LIVES || !wr_lane_ledger_has_queued(&lane->ledger) ||
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
    bool may = is_usable(lane) && !lane->ledger.spooled.samples && !wr_delivery_is_failing(&lane->delivery) &&
               (!lane->stopping || !spool_state->search_at_ns);
    return may ? spool_state->search_at_ns : WR_NEVER;
}

bool wr_spool_policy_must_fetch(const struct wr_lane *lane)
{
    return lane->ledger.spooled.samples && !lane->ledger.flight.range.segment &&
           !lane->ledger.fetched.range.segment;
}

/* ---- Results --------------------------------------------------------------------------------- */

void wr_spool_policy_update(struct wr_lane *lane, const struct wr_spool_policy_disk *state)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    if (state->bytes < spool_state->bytes)
        spool_state->put_at_ns = 0; /* there is room again */
    spool_state->bytes = state->bytes;
    wr_lane_ledger_set_spooled_front(&lane->ledger, state->front);
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
    spool_state->trouble[0] = '\0';
    wr_lane_ledger_moved(&lane->ledger);
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

void wr_spool_policy_failed(struct wr_lane *lane, bool full, const char *message, int64_t now_ns)
{
    wr_lane_ledger_not_moved(&lane->ledger);
    lane->spool_state.spilling = false;
    snprintf(lane->spool_state.trouble, sizeof lane->spool_state.trouble, "%s", message);
    lane->spool_state.put_at_ns = now_ns + TRY_AGAIN_S * WR_NS_PER_S;
    wr_lane_set_spooling(lane, false, now_ns);
    log_error(lane, full ? WEIR_LOG_WARNING : WEIR_LOG_ERROR, "spool", message, now_ns);
}

void wr_spool_policy_lost(struct wr_lane *lane, enum weir_drop why, const struct wr_spool_count *lost)
{
    wr_lane_ledger_lose(&lane->ledger, why, lost);
    lane->spool_state.spooling_logged &= lane->ledger.spooled.samples > 0;
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
    wr_lane_ledger_found(&lane->ledger, found->samples, found->extra);
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

static void log_empty(struct wr_lane *lane)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    wr_lane_log(lane, spool_state->spooling_logged ? WEIR_LOG_WARNING : WEIR_LOG_INFO,
                "the spool is empty again; %" PRIu64 " replayed", spool_state->replayed);
    spool_state->spooling_logged = false;
    spool_state->replayed = 0;
}

void wr_spool_policy_settled(struct wr_lane *lane, uint32_t samples, uint64_t extra, int64_t now_ns)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    if (!samples)
        return;
    spool_state->replayed += samples + extra;
    spool_state->settled += samples;
    spool_state->settled_extra += extra;
    if (!lane->ledger.spooled.samples)
        log_empty(lane);
    wr_lane_made_progress(lane, now_ns);
}

void wr_spool_policy_describe(const struct wr_lane *lane, char *text, size_t size)
{
    int length = snprintf(text, size, "%" PRIu64 " queued", wr_lane_ledger_queued(&lane->ledger));
    if (lane->ledger.spooled.samples && length > 0 && (size_t)length < size)
        snprintf(text + length, size - (size_t)length, ", %" PRIu64 " spooled",
                 wr_lane_ledger_spooled(&lane->ledger));
}
