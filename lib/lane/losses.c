#include "lane/losses.h"

#include <inttypes.h>
#include <stdio.h>

#include "lane/lane_internal.h"
#include "text/common.h"
#include "text/units.h"

enum { LOG_AGAIN_S = 60, EXPLAINED = 400 };

static const char *const names[WEIR_DROPPED_MAX] = {
    [WEIR_DROPPED_FULL] = "full",
    [WEIR_DROPPED_REJECTED] = "rejected",
    [WEIR_DROPPED_UNREPRESENTABLE] = "unrepresentable",
    [WEIR_DROPPED_FAILED] = "failed",
    [WEIR_DROPPED_REMOVED] = "removed",
    [WEIR_DROPPED_SHUTDOWN] = "shutdown",
    [WEIR_DROPPED_CORRUPT] = "corrupt",
    [WEIR_DROPPED_NO_THREAD] = "no_thread",
    [WEIR_DROPPED_REENTRANT] = "reentrant",
    [WEIR_DROPPED_FORK_UNSAFE] = "fork_unsafe",
    [WEIR_DROPPED_LIMIT] = "limit",
    [WEIR_DROPPED_FILTERED] = "filtered",
};

const char *wr_losses_name(int why)
{
    return why >= 0 && why < WEIR_DROPPED_MAX ? names[why] : NULL;
}

uint64_t wr_losses_sum(const uint64_t *dropped)
{
    uint64_t sum = 0;
    for (int why = 0; why < WEIR_DROPPED_MAX; why++)
        sum += why == WEIR_DROPPED_FILTERED ? 0 : dropped[why];
    return sum;
}

/* A queue is full although there is a spool. Returns text. */
static const char *explain_spool(const struct wr_lane *lane, char text[EXPLAINED])
{
    const struct wr_spool_state *spool_state = &lane->spool_state;
    char size[WR_UNITS_ROOM];
    if (!*spool_state->trouble)
        return "queue and spool are full";
    snprintf(text, EXPLAINED, "the queue is full, and nothing can be spooled: %s, with %s on disk",
             spool_state->trouble, wr_units_put_size(size, (int64_t)spool_state->bytes));
    return text;
}

/* Returns a static string, or text. NULL: where samples are dropped for this reason, a message is logged
 * already.
 */
static const char *explain(const struct wr_lane *lane, enum weir_drop why, char text[EXPLAINED])
{
    switch (why) {
    case WEIR_DROPPED_FULL: return lane->settings.spool_limit ? explain_spool(lane, text) : "the queue is full";
    case WEIR_DROPPED_UNREPRESENTABLE:
        return "the handler or its format cannot represent some values, or a total would be infinite";
    case WEIR_DROPPED_REENTRANT: return "the queue is full for values that weir's own threads add";
    case WEIR_DROPPED_FORK_UNSAFE: return "the handler was in use when the process forked";
    case WEIR_DROPPED_LIMIT:
        return lane->losses.has_spooled_too_many
                   ? "the spool has summaries of more series than settings.max_series "
                     "and settings.max_series_per_name leave room for"
                   : "more series than \"aggregate_series\" allows";
    default: return NULL;
    }
}

void wr_losses_log(struct wr_lane *lane, int64_t now_ns)
{
    struct wr_losses *losses = &lane->losses;
    for (int why = 0; why < WEIR_DROPPED_MAX; why++) {
        if (WR_LIKELY(lane->ledger.dropped[why] == losses->stated[why]) || now_ns < losses->again_ns[why])
            continue;
        char text[EXPLAINED];
        const char *reason = explain(lane, (enum weir_drop)why, text);
        if (!reason)
            continue;
        wr_lane_log(lane, WEIR_LOG_WARNING, "%s; %" PRIu64 " values dropped so far", reason,
                    lane->ledger.dropped[why]);
        losses->stated[why] = lane->ledger.dropped[why];
        losses->again_ns[why] = now_ns + LOG_AGAIN_S * WR_NS_PER_S;
    }
}

void wr_losses_state(struct wr_lane *lane, enum weir_drop why, uint64_t count)
{
    lane->losses.stated[why] += count;
}

void wr_losses_log_total(struct wr_lane *lane)
{
    char text[WEIR_DROPPED_MAX * 48] = ""; /* on the stack: the lane's lock is held */
    size_t length = 0;
    uint64_t total = 0;
    int reasons = 0;
    bool stated = true;
    for (int why = 0; why < WEIR_DROPPED_MAX; why++) {
        if (!lane->ledger.dropped[why] || why == WEIR_DROPPED_FILTERED)
            continue;
        total += lane->ledger.dropped[why];
        stated &= lane->ledger.dropped[why] == lane->losses.stated[why];
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%s%" PRIu64 " %s", reasons++ ? ", " : "",
                             lane->ledger.dropped[why], names[why] ? names[why] : "other");
        lane->losses.stated[why] = lane->ledger.dropped[why];
    }
    if (reasons > 1 || !stated)
        wr_lane_log(lane, WEIR_LOG_ERROR, "%" PRIu64 " values dropped in all (%s)", total, text);
}
