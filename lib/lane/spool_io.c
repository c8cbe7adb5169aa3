#include "lane/spool_io.h"

#include <inttypes.h>
#include <stdio.h>

#include "os/pages.h"
#include "os/clock.h"
#include "text/common.h"
#include "text/error.h"
#include "spool/spool.h"
#include "spool/spool_block.h"
#include "lane/spool_policy.h"

enum { LOG_AGAIN_S = 60, TRY_AGAIN_S = 1, SEARCH_AGAIN_S = 60 };

/* ---- Using the disk -------------------------------------------------------------------------- */

/* What an operation uses while the lock is released. */
struct operation {
    struct wr_lane *lane;
    struct wr_spool *spool; /* NULL: no memory for one */
    char *place;            /* the same */
    struct wr_label_set *labels;
};

/* Caller has set `busy`, which keeps other threads from it, and does not hold the lock. A forked child closes
 * what the spool opens, so the lane refers to it before it is used. */
static void make_spool(struct wr_lane *lane)
{
    struct wr_spool *spool = wr_spool_new(lane->name, lane->spool_state.registry);
    wr_lock_enter(&lane->lock);
    lane->spool_state.spool = spool;
    wr_lane_unlock(lane);
}

static bool begin(struct operation *operation, struct wr_lane *lane)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    *operation = (struct operation){.lane = lane, .labels = lane->labels};
    wr_labels_hold(operation->labels);
    operation->place = spool_state->place ? wr_pages_copy(spool_state->place) : NULL;
    spool_state->busy = true;
    wr_lane_unlock(lane);
    if (!spool_state->spool && operation->place)
        make_spool(lane);
    operation->spool = spool_state->spool;
    return operation->place && operation->spool;
}

static void finish(struct operation *operation)
{
    struct wr_lane *lane = operation->lane;
    uint64_t bytes = operation->spool ? operation->spool->index.bytes : 0;
    uint64_t front = operation->spool ? wr_spool_front(operation->spool) : 0;
    wr_labels_drop(operation->labels);
    wr_pages_put(operation->place);
    wr_lock_enter(&lane->lock);
    lane->spool_state.busy = false;
    if (bytes < lane->spool_state.bytes) /* there is room again */
        lane->spool_state.put_at_ns = 0;
    lane->spool_state.bytes = bytes;
    wr_lane_ledger_set_spooled_front(&lane->ledger, front);
    wr_condition_wake(&lane->progress);
    wr_lane_thread_wake_all(lane);
}

/* ---- Results --------------------------------------------------------------------------------- */

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

static void apply_moved(struct wr_lane *lane, int64_t now_ns)
{
    lane->spool_state.trouble[0] = '\0';
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

static void apply_failed(struct wr_lane *lane, bool full, const char *message, int64_t now_ns)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    wr_lane_ledger_not_moved(&lane->ledger);
    spool_state->spilling = false;
    spool_state->put_at_ns = now_ns + TRY_AGAIN_S * WR_NS_PER_S;
    snprintf(spool_state->trouble, sizeof spool_state->trouble, "%.*s", (int)sizeof spool_state->trouble - 1,
             message);
    wr_lane_set_spooling(lane, false, now_ns);
    log_error(lane, full ? WEIR_LOG_WARNING : WEIR_LOG_ERROR, "spool", message, now_ns);
}

static void apply_lost(struct wr_lane *lane, enum weir_drop why, const struct wr_spool_count *lost)
{
    wr_lane_ledger_lose(&lane->ledger, why, lost);
    lane->spool_state.spooling_logged &= lane->ledger.spooled.samples > 0;
    wr_condition_wake(&lane->progress);
}

static void log_damage(struct wr_lane *lane, uint64_t values, bool kept)
{
    wr_losses_state(lane, WEIR_DROPPED_CORRUPT, values);
    if (values)
        wr_lane_log(lane, WEIR_LOG_ERROR, "%" PRIu64 " spooled values are damaged and lost%s", values,
                    kept ? "; the damaged file is kept as .bad" : "");
    else if (kept)
        wr_lane_log(lane, WEIR_LOG_WARNING, "a damaged file of the spool is kept as .bad");
}

static void apply_found(struct wr_lane *lane, const struct wr_spool_found *found, int64_t now_ns)
{
    wr_lane_ledger_found(&lane->ledger, found->samples, found->values);
    lane->spool_state.search_at_ns = found->more ? now_ns : now_ns + SEARCH_AGAIN_S * WR_NS_PER_S;
    if (found->samples)
        wr_lane_log(lane, WEIR_LOG_INFO, "%" PRIu64 " values of earlier processes found in %s", found->values,
                    lane->spool_state.place);
}

static void apply_not_found(struct wr_lane *lane, const char *message, int64_t now_ns)
{
    lane->spool_state.search_at_ns = now_ns + SEARCH_AGAIN_S * WR_NS_PER_S;
    log_error(lane, WEIR_LOG_ERROR, "look for spooled values", message, now_ns);
}

static void apply_not_fetched(struct wr_lane *lane, const char *message, int64_t now_ns)
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

void wr_spool_io_settled(struct wr_lane *lane, uint32_t samples, uint64_t values, int64_t now_ns)
{
    struct wr_spool_state *spool_state = &lane->spool_state;
    spool_state->replayed += values;
    spool_state->settled += samples;
    spool_state->settled_values += values;
    if (!lane->ledger.spooled.samples)
        log_empty(lane);
    wr_lane_made_progress(lane, now_ns);
}

/* ---- Operations ------------------------------------------------------------------------------ */

void wr_spool_io_move(struct wr_lane *lane)
{
    struct operation operation;
    struct wr_error error = {0};
    const struct wr_range range = lane->ledger.moving;
    struct wr_spool_terms terms = {
        .limit = lane->settings.spool_limit,
        .drop_oldest = lane->settings.overflow == WR_OVERFLOW_DROP_OLDEST,
        .first_in_use = lane->ledger.fetched.range.segment || lane->ledger.flight.spooled,
    };
    struct wr_spool_count dropped = {0};
    enum wr_spool_result result = WR_SPOOL_FAILED;
    if (begin(&operation, lane)) {
        terms.place = operation.place;
        result = wr_spool_put(operation.spool, &terms, &range, operation.labels, &dropped, &error);
    } else {
        wr_error_no_memory(&error, NULL);
    }
    finish(&operation);
    int64_t now_ns = wr_clock_monotonic_ns();
    if (dropped.samples)
        apply_lost(lane, WEIR_DROPPED_FULL, &dropped);
    /* it took too long: they were counted as dropped, even if they are on disk */
    if (!lane->ledger.moving.segment)
        return;
    if (result == WR_SPOOL_OK)
        apply_moved(lane, now_ns);
    else
        apply_failed(lane, result == WR_SPOOL_FULL, error.text, now_ns);
}

void wr_spool_io_search(struct wr_lane *lane)
{
    struct operation operation;
    struct wr_error error = {0};
    struct wr_spool_found found = {0};
    bool searched = begin(&operation, lane) && wr_spool_adopt(operation.spool, operation.place, &found, &error);
    finish(&operation);
    int64_t now_ns = wr_clock_monotonic_ns();
    if (searched)
        apply_found(lane, &found, now_ns);
    else
        apply_not_found(lane, error.code ? error.text : "out of memory", now_ns);
    if (found.other_version)
        wr_lane_log(
            lane, WEIR_LOG_ERROR,
            "%s holds values written by another version of weir (format %u, this one reads %d); they are "
            "left as they are",
            lane->spool_state.place ? lane->spool_state.place : "the spool", found.other_version,
            WR_SPOOL_BLOCK_VERSION);
    log_damage(lane, 0, found.kept_bad);
}

/* None of the samples that should be on disk can be read. */
static void drop_lost(struct wr_lane *lane)
{
    const struct wr_spooled *spooled = &lane->ledger.spooled;
    const struct wr_spool_count lost = {spooled->samples, spooled->own, spooled->values};
    log_damage(lane, lost.values, false);
    apply_lost(lane, WEIR_DROPPED_CORRUPT, &lost);
}

void wr_spool_io_settle(struct wr_lane *lane)
{
    struct operation operation;
    uint32_t settled = lane->spool_state.settled;
    uint64_t values = lane->spool_state.settled_values;
    if (!settled || lane->spool_state.busy || wr_lane_is_forking(lane))
        return;
    lane->spool_state.settled = 0;
    lane->spool_state.settled_values = 0;
    begin(&operation, lane);
    bool kept = wr_spool_settle(operation.spool, settled, values);
    finish(&operation);
    log_damage(lane, 0, kept);
}

void wr_spool_io_fetch(struct wr_lane *lane)
{
    struct operation operation;
    struct wr_error error = {0};
    struct wr_spool_want want = {lane->settings.batch, lane->settings.batch_bytes, lane->labels};
    struct wr_spool_batch batch = {0};
    enum wr_spool_result result = WR_SPOOL_FAILED;
    /* otherwise samples that were settled without being in flight would be read again */
    if (lane->spool_state.settled) {
        wr_spool_io_settle(lane);
        return;
    }
    begin(&operation, lane);
    if (operation.spool)
        result = wr_spool_fetch(operation.spool, &want, &batch, &error);
    finish(&operation);
    if (batch.lost.samples)
        apply_lost(lane, WEIR_DROPPED_CORRUPT, &batch.lost);
    log_damage(lane, batch.lost.values, batch.kept_bad);
    if (batch.range.segment)
        wr_lane_ledger_fetched(&lane->ledger, &(struct wr_fetched){batch.range, batch.own, batch.labels});
    else if (result != WR_SPOOL_OK)
        apply_not_fetched(lane, operation.spool ? error.text : "out of memory", wr_clock_monotonic_ns());
    else
        drop_lost(lane);
}

static void use_if_free(struct wr_lane *lane, void (*use)(struct wr_spool *spool))
{
    struct operation operation;
    if (!lane->spool_state.spool || lane->spool_state.busy)
        return;
    begin(&operation, lane);
    use(operation.spool);
    finish(&operation);
}

void wr_spool_io_tidy(struct wr_lane *lane)
{
    use_if_free(lane, wr_spool_tidy);
}

void wr_spool_io_release(struct wr_lane *lane)
{
    use_if_free(lane, wr_spool_leave);
}
