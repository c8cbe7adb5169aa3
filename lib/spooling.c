#include "spooling.h"

#include <inttypes.h>
#include <stdio.h>

#include "common.h"

enum {
    STEPS_IN_LIMIT = 64,
    SMALLEST_STEP = 4 * 1024,
    LARGEST_STEP = 256 * 1024,
    REMINDER_S = 60,
    TRY_AGAIN_S = 1,
    SEARCH_AGAIN_S = 60,
    BUSY_MS = 50,
};

uint64_t wr_spooling_step_bytes(uint64_t limit)
{
    uint64_t bytes = limit / STEPS_IN_LIMIT;
    return bytes < SMALLEST_STEP ? SMALLEST_STEP : bytes > LARGEST_STEP ? LARGEST_STEP : bytes;
}

/* ---- What there is --------------------------------------------------------------------------- */

static bool is_on(const struct wr_lane *lane)
{
    const struct wr_stash *stash = &lane->stash;
    return lane->settings.spool_limit && stash->place && stash->registry && !stash->busy;
}

static bool has_flight(const struct wr_lane *lane)
{
    const struct wr_flight *flight = &lane->flight;
    return flight->range.segment && !flight->stashed && !flight->disowned;
}

bool wr_spooling_has_memory(const struct wr_lane *lane)
{
    return lane->stash.moving.segment || has_flight(lane) || !wr_queue_is_empty(&lane->queue);
}

/* The oldest samples that can be moved at this moment; NULL: there are none. */
static const struct wr_range *find_movable(const struct wr_lane *lane)
{
    if (lane->stash.moving.segment)
        return &lane->stash.moving;
    if (has_flight(lane) && !lane->flight.lent)
        return &lane->flight.range;
    return wr_queue_is_empty(&lane->queue) ? NULL : wr_queue_front(&lane->queue);
}

bool wr_spooling_is_last_call(const struct wr_lane *lane, int64_t now_ns)
{
    if (!lane->stopping || !lane->settings.spool_limit)
        return false;
    if (lane->stop_deadline_ns == WR_NEVER) /* there is no later, so one more try must do */
        return lane->failing && now_ns < lane->retry_at_ns;
    return now_ns >= lane->stash.save_at_ns;
}

/* ---- What is to be moved --------------------------------------------------------------------- */

/* Somebody waits for what the handler does not take. */
static bool is_flushed_in_vain(const struct wr_lane *lane, int64_t now_ns)
{
    return lane->flushed < lane->flush_wanted && lane->failing && now_ns < lane->retry_at_ns &&
           wr_lane_front_in_memory(lane) < lane->flush_wanted;
}

/* How long a handler may be busy before callers need not wait for it: well before block_timeout is
 * over, after which what they add is dropped. */
static int64_t patience_ns(const struct wr_lane *lane)
{
    int64_t half_ns = lane->settings.block_timeout_ns / 2;
    return half_ns < BUSY_MS * WR_NS_PER_MS ? half_ns : BUSY_MS * WR_NS_PER_MS;
}

/* When the queue has filled up, and it is not just that callers are a bit faster than the handler. */
static int64_t fill_time(const struct wr_lane *lane)
{
    if (wr_lane_queued_bytes(lane) < lane->settings.queue_bytes / 2)
        return WR_NEVER;
    if (lane->failing || lane->stash.samples || lane->settings.overflow != WR_OVERFLOW_BLOCK ||
        lane->pressure.state == WR_PRESSURE_STALLED)
        return 0;
    return lane->busy_since_ns ? lane->busy_since_ns + patience_ns(lane) : WR_NEVER;
}

/* Once it has filled up, all that is queued by then goes; and then it is the handler's turn, until which
 * nothing more is begun. */
static int64_t spill_time(struct wr_lane *lane, int64_t now_ns)
{
    struct wr_stash *stash = &lane->stash;
    if (stash->spilling && find_movable(lane)->sequence < stash->spill_end)
        return 0;
    stash->tired |= stash->spilling;
    int64_t at_ns = stash->tired ? WR_NEVER : fill_time(lane);
    stash->spilling = at_ns <= now_ns;
    stash->spill_end = lane->position;
    return at_ns;
}

int64_t wr_spooling_time(struct wr_lane *lane, int64_t now_ns)
{
    if (!is_on(lane) || lane->ending != WR_LANE_LIVES || !find_movable(lane))
        return WR_NEVER;
    bool at_once = wr_spooling_is_last_call(lane, now_ns) || is_flushed_in_vain(lane, now_ns);
    int64_t at_ns = at_once ? 0 : spill_time(lane, now_ns);
    return at_ns > lane->stash.put_at_ns ? at_ns : lane->stash.put_at_ns;
}

/* What is in flight is older than what is queued. The handler's answer to what it still has does not count any
 * more. */
static void take_flight(struct wr_lane *lane)
{
    struct wr_flight *flight = &lane->flight;
    lane->stash.moving = flight->range;
    if (!flight->lent) {
        *flight = (struct wr_flight){0};
        return;
    }
    wr_segment_hold(flight->range.segment);
    flight->disowned = true;
}

static void take(struct wr_lane *lane, bool lent_too)
{
    if (lane->stash.moving.segment)
        return; /* from a try that failed */
    if (has_flight(lane) && (!lane->flight.lent || lent_too))
        take_flight(lane);
    else
        lane->stash.moving =
            wr_queue_take(&lane->queue, UINT32_MAX, wr_spooling_step_bytes(lane->settings.spool_limit));
}

bool wr_spooling_prepare(struct wr_lane *lane, int64_t now_ns)
{
    if (wr_spooling_time(lane, now_ns) > now_ns)
        return false;
    take(lane, false);
    return true;
}

bool wr_spooling_prepare_last(struct wr_lane *lane, int64_t now_ns)
{
    if (!is_on(lane) || lane->ending != WR_LANE_LIVES || !wr_spooling_has_memory(lane) ||
        lane->stash.put_at_ns > now_ns)
        return false;
    take(lane, true);
    return true;
}

/* ---- What is to be read ---------------------------------------------------------------------- */

/* Even a program that ends at once looks once: else what such programs leave would stay for ever. */
int64_t wr_spooling_search_time(const struct wr_lane *lane)
{
    const struct wr_stash *stash = &lane->stash;
    bool may = is_on(lane) && !stash->samples && !lane->failing && (!lane->stopping || !stash->search_at_ns);
    return may ? stash->search_at_ns : WR_NEVER;
}

bool wr_spooling_must_fetch(const struct wr_lane *lane)
{
    return lane->stash.samples && !lane->flight.range.segment && !lane->stash.fetched.segment;
}

/* ---- What became of it ----------------------------------------------------------------------- */

void wr_spooling_see(struct wr_lane *lane, const struct wr_spooling_state *state)
{
    struct wr_stash *stash = &lane->stash;
    if (state->bytes < stash->bytes)
        stash->put_at_ns = 0; /* there is room again */
    stash->bytes = state->bytes;
    if (state->front > stash->front)
        stash->front = state->front;
}

static void say_filling(struct wr_lane *lane, int64_t now_ns)
{
    struct wr_stash *stash = &lane->stash;
    if (stash->filling_said || now_ns < stash->filling_reminder_ns || wr_spooling_is_last_call(lane, now_ns))
        return;
    wr_lane_say(lane, WEIR_LOG_WARNING, "spooling to %s", stash->place);
    stash->filling_said = true;
    stash->filling_reminder_ns = now_ns + REMINDER_S * WR_NS_PER_S;
}

void wr_spooling_moved(struct wr_lane *lane, int64_t now_ns)
{
    struct wr_stash *stash = &lane->stash;
    struct wr_range moved = stash->moving;
    stash->moving = (struct wr_range){0};
    wr_range_settle(&moved, moved.count);
    if (!stash->own || moved.sequence < stash->front)
        stash->front = moved.sequence;
    stash->samples += moved.count;
    stash->own += moved.count;
    wr_waiting_answer(&lane->waiting, moved.sequence, moved.sequence + moved.count, WEIR_ERR_SPOOLED);
    wr_segment_drop(moved.segment);
    say_filling(lane, now_ns);
    wr_lane_moved(lane, now_ns);
}

/* Each minute at most. */
static void say_trouble(struct wr_lane *lane, int level, const char *doing, const char *words, int64_t now_ns)
{
    char backlog[80];
    if (now_ns < lane->stash.trouble_reminder_ns)
        return;
    lane->stash.trouble_reminder_ns = now_ns + REMINDER_S * WR_NS_PER_S;
    wr_spooling_describe(lane, backlog, sizeof backlog);
    wr_lane_say(lane, level, "cannot %s: %s; %s", doing, words, backlog);
}

void wr_spooling_failed(struct wr_lane *lane, bool full, const char *words, int64_t now_ns)
{
    lane->stash.spilling = false;
    lane->stash.put_at_ns = now_ns + TRY_AGAIN_S * WR_NS_PER_S;
    say_trouble(lane, full ? WEIR_LOG_WARNING : WEIR_LOG_ERROR, "spool", words, now_ns);
}

void wr_spooling_lost(struct wr_lane *lane, enum weir_drop why, uint64_t samples, uint64_t own)
{
    wr_lane_count_drop(lane, why, samples);
    lane->stash.samples -= samples;
    lane->stash.own -= own;
    lane->stash.filling_said &= lane->stash.samples > 0;
    wr_condition_wake(&lane->progress);
}

void wr_spooling_say_damage(struct wr_lane *lane, uint64_t samples, bool kept)
{
    if (samples)
        wr_lane_say(lane, WEIR_LOG_ERROR, "%" PRIu64 " spooled values are damaged and lost%s", samples,
                    kept ? "; the damaged file is kept, as .bad" : "");
    else if (kept)
        wr_lane_say(lane, WEIR_LOG_WARNING, "a damaged file of the spool is kept, as .bad");
}

void wr_spooling_found(struct wr_lane *lane, uint64_t samples, bool more, int64_t now_ns)
{
    lane->stash.samples += samples;
    lane->recovered += samples;
    lane->stash.search_at_ns = more ? now_ns : now_ns + SEARCH_AGAIN_S * WR_NS_PER_S;
    if (samples)
        wr_lane_say(lane, WEIR_LOG_INFO, "%" PRIu64 " values of earlier processes found in %s", samples,
                    lane->stash.place);
}

void wr_spooling_not_found(struct wr_lane *lane, const char *words, int64_t now_ns)
{
    lane->stash.search_at_ns = now_ns + SEARCH_AGAIN_S * WR_NS_PER_S;
    say_trouble(lane, WEIR_LOG_ERROR, "look for spooled values", words, now_ns);
}

void wr_spooling_not_fetched(struct wr_lane *lane, const char *words, int64_t now_ns)
{
    lane->retry_at_ns = now_ns + TRY_AGAIN_S * WR_NS_PER_S;
    say_trouble(lane, WEIR_LOG_ERROR, "read what was spooled", words, now_ns);
}

void wr_spooling_fetched(struct wr_lane *lane, const struct wr_range *range, struct wr_label_set *labels,
                         bool own)
{
    wr_stash_forget_fetched(&lane->stash);
    lane->stash.fetched = *range;
    lane->stash.labels = labels;
    lane->stash.fetched_own = own;
}

static void say_empty(struct wr_lane *lane)
{
    struct wr_stash *stash = &lane->stash;
    wr_lane_say(lane, stash->filling_said ? WEIR_LOG_WARNING : WEIR_LOG_INFO,
                "the spool is empty again; %" PRIu64 " replayed", stash->replayed);
    stash->filling_said = false;
    stash->replayed = 0;
}

void wr_spooling_settled(struct wr_lane *lane, uint32_t samples, uint64_t next, int64_t now_ns)
{
    struct wr_stash *stash = &lane->stash;
    if (!samples)
        return;
    stash->samples -= samples;
    stash->replayed += samples;
    stash->settled += samples;
    if (stash->fetched_own) {
        stash->own -= samples;
        stash->front = next;
    }
    if (!stash->samples)
        say_empty(lane);
    wr_lane_moved(lane, now_ns);
}

void wr_spooling_describe(const struct wr_lane *lane, char *text, size_t size)
{
    int length = snprintf(text, size, "%" PRIu64 " queued", wr_lane_queued(lane));
    if (lane->stash.samples && length > 0 && (size_t)length < size)
        snprintf(text + length, size - (size_t)length, ", %" PRIu64 " spooled", lane->stash.samples);
}
